"""Arrays and what runs over them: compressed sparse rows, dense numbers, blocks over threads."""

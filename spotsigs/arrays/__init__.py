"""Operations on arrays: compressed sparse rows, contiguous ids, blocks over threads."""

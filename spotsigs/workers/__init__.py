"""Workers: the engines that start them, and the progress of their tasks."""

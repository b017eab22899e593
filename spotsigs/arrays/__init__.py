"""Operations on arrays: compressed sparse rows, contiguous ids, blocks over threads."""

from pathlib import Path

from spotsigs.arrays.kernel_cache import delete_outdated_kernels, set_cache_folder

set_cache_folder()  # before the first kernel is declared; every module with kernels imports this package
delete_outdated_kernels(Path(__file__).parents[1])

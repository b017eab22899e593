"""What the fuzzer's coverage guides through: the readers and the stores. Kernels are compiled, and give none."""

MODULES = ["spotsigs.formats", "spotsigs.storage.store"]

"""What the fuzzer's coverage guides through: the readers and the stores. Kernels are compiled, and give none."""

MODULES = ["spotsigs.data.formats", "spotsigs.disk.store"]

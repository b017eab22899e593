"""Instructions of the processor for kernels: prefetching and population count."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

if getattr(config, "DISABLE_JIT"):  # noqa: B009 - interpreted kernels, for coverage: the same values, no hints

    def prefetch(array: Any, index: Any) -> None:
        """Prefetch the cache line of ``array[index]``."""

    def bit_count(word: Any) -> int:
        """Return the number of ones in a 64-bit word."""
        return int(word).bit_count()

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Prefetch the cache line of ``array[index]``, which need not exist."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            item = cgutils.get_item_pointer(context, builder, signature.args[0], view, [arguments[1]])
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(hint, [builder.bitcast(item, byte), word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate

    @intrinsic
    def bit_count(context: Any, word: Any) -> Any:
        """Return the number of ones in a 64-bit word."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), generate

"""A few words over llvmlite, so that a kernel reads as loops over vectors, not as instructions."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from llvmlite import ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32 = ir.HalfType(), ir.FloatType()
POINTER = ir.PointerType()

_Branch: TypeAlias = AbstractContextManager[ir.Block]


def index(value: int) -> ir.Constant:
    """A 64-bit constant."""
    return ir.Constant(I64, value)


class Emitter:
    """Writes one function: vectors of `lanes` floats, loops, and addresses counted in elements."""

    def __init__(self, function: ir.Function, lanes: int) -> None:
        self.function = function
        self.lanes = lanes
        self.floats = ir.VectorType(F32, lanes)
        self.integers = ir.VectorType(I32, lanes)
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        body = function.append_basic_block("body")
        self.builder = ir.IRBuilder(body)
        self._first = body

    def finish(self, result: ir.Value | None = None) -> None:
        """End the function; the entry block holds the stack space and leads to the body."""
        if result is None:
            self.builder.ret_void()
        else:
            self.builder.ret(result)
        self._entry.branch(self._first)

    # -- memory -------------------------------------------------------------------------------
    def stack(self, kind: ir.Type, count: int = 1) -> ir.Value:
        """Aligned stack space for `count` values, taken once on entry."""
        space = self._entry.alloca(kind, size=index(count))
        space.align = 64
        space.type = POINTER  # typed pointers are gone from LLVM, not yet from the builder
        return space

    def at(self, pointer: ir.Value, offset: ir.Value | int, kind: ir.Type = F32) -> ir.Value:
        """The address `offset` elements of `kind` after a pointer."""
        place = index(offset) if isinstance(offset, int) else offset
        return self.builder.gep(pointer, [place], inbounds=True, source_etype=kind)

    def load(self, pointer: ir.Value, kind: ir.Type, align: int = 4) -> ir.Value:
        """One value of any kind; arrays of 32-bit elements lie at multiples of 4 bytes."""
        return self.builder.load(pointer, typ=kind, align=align)

    def store(self, value: ir.Value, pointer: ir.Value, align: int = 4) -> None:
        """Write one value."""
        self.builder.store(value, pointer, align=align)

    def prefetch(self, pointer: ir.Value) -> None:
        """Ask for a line of memory that will be read soon, into the second cache."""
        read, near, data = (ir.Constant(I32, number) for number in (0, 2, 1))
        self.intrinsic("llvm.prefetch.p0", ir.VoidType(), pointer, read, near, data)

    # -- control ------------------------------------------------------------------------------
    @contextmanager
    def loop(
        self, stop: ir.Value | int, start: ir.Value | int = 0, step: ir.Value | int = 1
    ) -> Iterator[ir.Value]:
        """Count from start below stop."""
        builder, function = self.builder, self.function
        first, last, stride = (self._integer(value) for value in (start, stop, step))
        before = builder.block
        test, body, after = (
            function.append_basic_block(name) for name in ("test", "loop", "after")
        )
        builder.branch(test)
        builder.position_at_end(test)
        counter = builder.phi(I64)
        counter.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", counter, last), body, after)
        builder.position_at_end(body)
        yield counter
        counter.add_incoming(builder.add(counter, stride), builder.block)
        builder.branch(test)
        builder.position_at_end(after)

    @contextmanager
    def when(self, condition: ir.Value) -> Iterator[None]:
        """Run the body only if the condition holds."""
        with self.builder.if_then(condition):
            yield

    @contextmanager
    def either(self, condition: ir.Value) -> Iterator[tuple[_Branch, _Branch]]:
        """Two bodies, of which one is run."""
        with self.builder.if_else(condition) as branches:
            yield branches

    # -- arithmetic ---------------------------------------------------------------------------
    def add(self, *values: ir.Value | int) -> ir.Value:
        """The sum of 64-bit integers."""
        total = self._integer(values[0])
        for value in values[1:]:
            total = self.builder.add(total, self._integer(value))
        return total

    def mul(self, *values: ir.Value | int) -> ir.Value:
        """The product of 64-bit integers."""
        total = self._integer(values[0])
        for value in values[1:]:
            total = self.builder.mul(total, self._integer(value))
        return total

    def least(self, one: ir.Value | int, other: ir.Value | int) -> ir.Value:
        """The smaller of two 64-bit integers."""
        one, other = self._integer(one), self._integer(other)
        return self.builder.select(self.builder.icmp_signed("<", one, other), one, other)

    def round_down(self, value: ir.Value, multiple: int) -> ir.Value:
        """The greatest multiple that is not above the value."""
        return self.mul(self.builder.sdiv(value, index(multiple)), multiple)

    def greater(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """The greater of two floats or vectors; the second where they are equal."""
        return self.builder.select(self.builder.fcmp_ordered(">", one, other), one, other)

    def smaller(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """The smaller of two floats or vectors; the second where they are equal."""
        return self.builder.select(self.builder.fcmp_ordered("<", one, other), one, other)

    def constant(self, value: float) -> ir.Constant:
        """The same float in every lane."""
        return ir.Constant(self.floats, [value] * self.lanes)

    def whole(self, value: int) -> ir.Constant:
        """The same 32-bit integer in every lane."""
        return ir.Constant(self.integers, [value] * self.lanes)

    def bits(self, mask: ir.Value) -> ir.Value:
        """A vector of truths as the bits of one integer."""
        return self.builder.bitcast(mask, ir.IntType(self.lanes))

    def broadcast(self, scalar: ir.Value, kind: ir.VectorType) -> ir.Value:
        """A scalar in every lane of a vector."""
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
        mask = ir.Constant(ir.VectorType(I32, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, undefined, mask)

    def fused_multiply_add(self, one: ir.Value, other: ir.Value, addend: ir.Value) -> ir.Value:
        """One * other + addend with a single rounding, on every machine."""
        return self.intrinsic(f"llvm.fma.v{self.lanes}f32", self.floats, one, other, addend)

    def byte_multiply_add(self, unsigned: ir.Value, signed: ir.Value, addend: ir.Value) -> ir.Value:
        """Addend + the sum of four products of bytes, in every lane."""
        name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
        return self.intrinsic(name, self.integers, addend, unsigned, signed)

    def intrinsic(self, name: str, kind: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Call an LLVM intrinsic, declared in the module on first use."""
        module = self.builder.module
        known = module.globals.get(name)
        if known is None:
            signature = ir.FunctionType(kind, [argument.type for argument in arguments])
            known = ir.Function(module, signature, name)
        return self.builder.call(known, arguments)

    def transpose(self, vectors: Sequence[ir.Value]) -> list[ir.Value]:
        """The square of `lanes` vectors, turned: lane i of vector j becomes lane j of vector i."""
        half = self.lanes // 2
        low = [lane // 2 + self.lanes * (lane % 2) for lane in range(self.lanes)]
        high = [place + half for place in low]
        mixed, rounds = list(vectors), self.lanes.bit_length() - 1
        for _ in range(rounds):
            pairs = list(zip(mixed[:half], mixed[half:], strict=True))
            mixed = [
                self._shuffle(one, other, order) for one, other in pairs for order in (low, high)
            ]
        return mixed

    def _shuffle(self, one: ir.Value, other: ir.Value, order: Sequence[int]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(I32, len(order)), list(order))
        return self.builder.shuffle_vector(one, other, mask)

    def _integer(self, value: ir.Value | int) -> ir.Value:
        return index(value) if isinstance(value, int) else value

"""The control program's operations: a row of the program is ``(operation, a, b, c, d)``."""

END = 0
MOVE = 1  # a: move list, b: step
COMPUTE = 2  # a: compute, b: step of the exchange before or -1, c: step of the compute set, d: step of the exchange after or -1
REPEAT = 3  # a: counter, b: times, c: where to go when there is nothing to repeat
REPEAT_END = 4  # a: counter, b: start of the body
JUMP = 5  # a: where to
BRANCH = 6  # a: address, b: bytes of the value, c: where to go if the value is zero
UNLESS_EQUAL = 7  # a: address, b: bytes of the value, c: value, d: where to go if it differs
CALL = 8  # a: where to
RETURN = 9
STREAM_IN = 10  # a: stream, b: move list (sources are offsets in the chunk), c: step
STREAM_OUT = 11  # a: stream, b: move list (targets are offsets in the chunk), c: step
SERVICE = 12  # a: service, done by the engine in Python
CALLBACK = 13  # a: stream, b: service: done if the stream is connected to a callback
STAMP = 14  # a: clock to set to the cycles so far
ELAPSED = 15  # a: clock, b: address where two unsigned ints take the cycles since its stamp
CLOCK = 16  # b: address where two unsigned ints take the cycles so far
FLOATING_POINT = 17  # a: mask of the exceptions that stop the program
SYNC = 18  # a: step

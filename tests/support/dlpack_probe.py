"""dlpack_probe.py LIBRARY: NumPy, and PyTorch where it is there, exchange tensors with libdlpack_probe.so."""

import ctypes
import gc
import sys

import numpy

probe = ctypes.CDLL(sys.argv[1])
probe.dlpack_probe_give.restype = ctypes.c_void_p
probe.dlpack_probe_take.restype = ctypes.c_double
probe.dlpack_probe_take.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
capsules = ctypes.pythonapi
capsules.PyCapsule_New.restype = ctypes.py_object
capsules.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsules.PyCapsule_GetPointer.restype = ctypes.c_void_p
capsules.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsules.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor"  # PyCapsule_SetName keeps the pointer


class Given:
    """What the library gives, as Python's protocol wants it."""

    def __dlpack__(self, **_):
        pointer = probe.dlpack_probe_give()
        assert pointer, "no tensor"
        return capsules.PyCapsule_New(pointer, b"dltensor", None)

    def __dlpack_device__(self):
        return 1, 0


def take(tensor):
    capsule = tensor.__dlpack__()
    pointer = capsules.PyCapsule_GetPointer(capsule, b"dltensor")
    capsules.PyCapsule_SetName(capsule, USED)
    adopted = ctypes.c_int(0)
    return probe.dlpack_probe_take(pointer, ctypes.byref(adopted)), adopted.value


def check(name, given, mine, turned):
    assert given.tolist() == [[0, 3], [1, 4], [2, 5]], given
    step = given.strides if isinstance(given, numpy.ndarray) else given.stride()
    assert tuple(step) in ((4, 12), (1, 3)), step
    for tensor in (mine, turned):
        values = numpy.asarray(tensor).ravel()
        want = float(sum((i + 1) * v for i, v in enumerate(values)))
        got = take(tensor)
        assert got == (want, probe.dlpack_probe_adopts()), (name, got, want)
    del given
    gc.collect()
    print(name, "agrees")


numbers = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
check("NumPy", numpy.from_dlpack(Given()), numbers, numbers.copy().T[::2])
try:
    import torch
except ImportError:
    pass
else:
    tensor = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    check("PyTorch", torch.from_dlpack(Given()), tensor, tensor.clone().t()[::2])
probe.dlpack_probe_end()

package ucm.device.cuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import jcuda.NativePointerObject;
import jcuda.driver.CUipcMemHandle;
import ucm.device.DeviceException;

/**
 * Sets fields of JCuda's objects that its native code reads. JCuda's own way to name a place is a fresh object for
 * each; for an event or a handle made elsewhere it has none.
 */
final class Handles {

  private static final VarHandle ADDRESS =
      field(NativePointerObject.class, "nativePointer", long.class);
  private static final VarHandle IPC = field(CUipcMemHandle.class, "reserved", byte[].class);

  private Handles() {}

  /** Points an object somewhere else. */
  static void set(NativePointerObject object, long address) {
    ADDRESS.set(object, address);
  }

  /** Where an object points. */
  static long get(NativePointerObject object) {
    return (long) ADDRESS.get(object);
  }

  /** A handle of memory that another process has exported. */
  static CUipcMemHandle ipc(byte[] bytes) {
    CUipcMemHandle handle = new CUipcMemHandle();
    byte[] own = (byte[]) IPC.get(handle);
    if (bytes.length != own.length) {
      throw new DeviceException(
          "a handle of shared memory has " + own.length + " bytes; found " + bytes.length);
    }
    System.arraycopy(bytes, 0, own, 0, own.length);
    return handle;
  }

  private static VarHandle field(Class<?> of, String name, Class<?> type) {
    try {
      return MethodHandles.privateLookupIn(of, MethodHandles.lookup())
          .findVarHandle(of, name, type);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this JCuda has no " + of + "." + name, e);
    }
  }
}

package ucm.device.cuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import jcuda.NativePointerObject;

/**
 * Sets the address in JCuda's objects. JCuda's own way to name a place is a fresh object for each,
 * and for an event made elsewhere it has none; the field is what its native code reads.
 */
final class Handles {

  private static final VarHandle ADDRESS = address();

  private Handles() {}

  /** Points an object somewhere else. */
  static void set(NativePointerObject object, long address) {
    ADDRESS.set(object, address);
  }

  /** Where an object points. */
  static long get(NativePointerObject object) {
    return (long) ADDRESS.get(object);
  }

  private static VarHandle address() {
    try {
      return MethodHandles.privateLookupIn(NativePointerObject.class, MethodHandles.lookup())
          .findVarHandle(NativePointerObject.class, "nativePointer", long.class);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this JCuda keeps its addresses elsewhere", e);
    }
  }
}

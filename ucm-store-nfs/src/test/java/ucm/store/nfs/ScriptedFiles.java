package ucm.store.nfs;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;

/** Real system calls, of which a test can make some fail, before or after they are done. */
final class ScriptedFiles {

  private record Fault(int errno, boolean isDone, AtomicInteger times) {}

  private final FileOperations real = new LibcFileOperations();
  private final Map<String, Fault> faults = new ConcurrentHashMap<>();
  private final List<String> calls = new CopyOnWriteArrayList<>();

  /** The calls, as a store takes them. */
  FileOperations operations() {
    return (FileOperations)
        Proxy.newProxyInstance(
            FileOperations.class.getClassLoader(),
            new Class<?>[] {FileOperations.class},
            (proxy, method, arguments) -> {
              calls.add(method.getName() + " " + List.of(arguments));
              Fault fault = faults.get(method.getName());
              boolean fails =
                  fault != null
                      // Of the folders of the store, which lead to no block, none fails.
                      && List.of(arguments).toString().contains("/data/")
                      && fault.times.getAndDecrement() > 0;
              if (fails && !fault.isDone) {
                throw new FileException(method.getName(), arguments[0], fault.errno);
              }
              Object result;
              try {
                result = method.invoke(real, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              if (fails) {
                throw new FileException(method.getName(), arguments[0], fault.errno);
              }
              return result;
            });
  }

  /** The next calls on files of blocks fail, and nothing is done. */
  void fail(String call, int errno, int times) {
    faults.put(call, new Fault(errno, false, new AtomicInteger(times)));
  }

  /** The next calls are done, and say that they failed. */
  void loseAnswer(String call, int errno, int times) {
    faults.put(call, new Fault(errno, true, new AtomicInteger(times)));
  }

  void heal() {
    faults.clear();
  }

  /** What was called, with its arguments, in order. */
  List<String> calls() {
    return calls;
  }
}

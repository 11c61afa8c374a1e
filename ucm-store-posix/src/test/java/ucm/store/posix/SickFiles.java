package ucm.store.posix;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.function.Predicate;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;
import ucm.store.common.LibcFiles;
import ucm.store.common.NativePath;

/** Real system calls on directories, each of which a test can make fail or hang as a whole. */
final class SickFiles {

  private interface Illness {
    void strike(String call, NativePath path) throws InterruptedException;
  }

  private final LibcFiles real = new LibcFiles();
  private final Map<String, Illness> illnesses = new ConcurrentHashMap<>();

  /** The calls. */
  FileSeam seam() {
    return (FileSeam)
        Proxy.newProxyInstance(
            SickFiles.class.getClassLoader(),
            new Class<?>[] {FileSeam.class},
            (proxy, method, arguments) -> call(method, arguments));
  }

  /** From now on, those calls below a directory fail that are selected by their name. */
  void fail(Path directory, int errno, Predicate<String> calls) {
    illnesses.put(
        directory + "/",
        (call, path) -> {
          if (calls.test(call)) {
            throw new FileException(call, path, errno);
          }
        });
  }

  /** From now on, all calls below a directory fail. */
  void fail(Path directory, int errno) {
    fail(directory, errno, call -> true);
  }

  /** From now on, those calls hang that are selected by their name, until the hang is ended. */
  Hang hang(Path directory, Predicate<String> calls) {
    Hang hang = new Hang();
    illnesses.put(
        directory + "/",
        (call, path) -> {
          if (calls.test(call)) {
            hang.held.release();
            hang.released.await();
          }
        });
    return hang;
  }

  /** From now on, a directory works. */
  void heal(Path directory) {
    illnesses.remove(directory + "/");
  }

  /** Calls that hang. */
  static final class Hang implements AutoCloseable {

    private final Semaphore held = new Semaphore(0);
    private final CountDownLatch released = new CountDownLatch(1);

    /** Waits until so many calls more hang. */
    void awaitHeld(int calls) throws InterruptedException {
      held.acquire(calls);
    }

    /** Lets all of them go on. */
    void end() {
      released.countDown();
    }

    @Override
    public void close() {
      end();
    }
  }

  private Object call(Method method, Object[] arguments) throws Throwable {
    for (Object argument : arguments) {
      if (argument instanceof NativePath path) {
        for (Map.Entry<String, Illness> illness : illnesses.entrySet()) {
          if (path.toString().startsWith(illness.getKey())) {
            illness.getValue().strike(method.getName(), path);
          }
        }
        break;
      }
    }
    try {
      return method.invoke(real, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}

package ucm.store.posix;

import java.util.Locale;

/**
 * What tells the stores apart that keep blocks in files: the name that people see, and the prefix of
 * the keys, metrics and threads that are theirs alone.
 *
 * @param name for example {@code Posix}
 * @param faults is told of a thread of the store that ends by an error
 */
public record StoreKind(String name, Thread.UncaughtExceptionHandler faults) {

  static final StoreKind POSIX = new StoreKind("Posix");

  /** A kind whose threads end as any other does. */
  public StoreKind(String name) {
    this(name, StoreKind::endThread);
  }

  private static void endThread(Thread thread, Throwable error) {
    thread.getThreadGroup().uncaughtException(thread, error);
  }

  /** The prefix, without an underscore. */
  String prefix() {
    return name.toLowerCase(Locale.ROOT);
  }

  /** The name of a key that only this kind of store has. */
  String key(String rest) {
    return prefix() + "_" + rest;
  }

  /** The name of a thread. */
  String thread(String role, int number) {
    return "ucm-" + prefix() + "-" + role + "-" + number;
  }

  /** Makes a thread of the store. */
  Thread.Builder newThread(String role, int number) {
    return Thread.ofPlatform().daemon().name(thread(role, number)).uncaughtExceptionHandler(faults);
  }

  /** The configuration keys of such a store. */
  PosixKeys keys() {
    return new PosixKeys(this);
  }
}

package ucm.store.file.config;

import java.util.Locale;
import java.util.function.DoubleSupplier;
import ucm.api.StoreMetrics;
import ucm.platform.thread.OwnThreads;

/**
 * What distinguishes stores that keep blocks in files: the name in messages, and the prefix of
 * the keys, metrics and threads that are theirs alone.
 *
 * @param name for example {@code Posix}
 * @param isLocal whether its files are taken for local ones, where noting an access time costs no round trip
 * @param faults handles a thread of the store that ends by an error
 */
public record StoreKind(String name, boolean isLocal, Thread.UncaughtExceptionHandler faults) {

  /** A kind whose threads end as any other does. */
  public StoreKind(String name, boolean isLocal) {
    this(name, isLocal, StoreKind::endThread);
  }

  private static void endThread(Thread thread, Throwable error) {
    thread.getThreadGroup().uncaughtException(thread, error);
  }

  /** The prefix, without an underscore. */
  public String prefix() {
    return name.toLowerCase(Locale.ROOT);
  }

  /** The name of a key that only this kind of store has. */
  public String key(String rest) {
    return prefix() + "_" + rest;
  }

  /** The name of a thread. */
  public String thread(String role, int number) {
    return "ucm-" + prefix() + "-" + role + "-" + number;
  }

  /** Makes the threads of an executor of the store. */
  public OwnThreads threads(String role) {
    return new OwnThreads("ucm-" + prefix() + "-" + role + "-", faults);
  }

  /** Makes a thread of the store. */
  public Thread.Builder newThread(String role, int number) {
    return Thread.ofPlatform().daemon().name(thread(role, number)).uncaughtExceptionHandler(faults);
  }

  /** Metrics whose names begin with the prefix of this kind. */
  public StoreMetrics metrics(StoreMetrics all) {
    return new StoreMetrics() {
      @Override
      public Counter counter(String name, String help) {
        return all.counter(key(name), help);
      }

      @Override
      public Histogram histogram(String name, String help) {
        return all.histogram(key(name), help);
      }

      @Override
      public void gauge(String name, String help, DoubleSupplier value) {
        all.gauge(key(name), help, value);
      }
    };
  }

  /** The configuration keys of such a store. */
  public FileStoreKeys keys() {
    return new FileStoreKeys(this);
  }
}

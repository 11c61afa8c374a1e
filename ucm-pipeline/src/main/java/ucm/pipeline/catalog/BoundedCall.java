package ucm.pipeline.catalog;

import java.time.Duration;
import java.util.ServiceConfigurationError;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import ucm.api.StoreException;

/** Runs what may not come back, such as code of a plugin, on a thread of its own. */
public final class BoundedCall {

  private static final Duration LIMIT = Duration.ofSeconds(10);

  private BoundedCall() {}

  /** Runs it for ten seconds at the most; see {@link #run(String, Duration, Supplier)}. */
  public static <T> T run(String what, Supplier<? extends T> code) {
    return run(what, LIMIT, code);
  }

  /**
   * Runs it; what it throws is thrown.
   *
   * @param what is run, and where it comes from
   * @throws HangsException when it has not come back in time; its thread ends with the process
   */
  public static <T> T run(String what, Duration limit, Supplier<? extends T> code) {
    FutureTask<T> task = new FutureTask<>(code::get);
    Thread.ofPlatform().daemon().name("ucm-bounded-call").start(task);
    try {
      return task.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      switch (e.getCause()) {
        case RuntimeException fault -> throw fault;
        case ServiceConfigurationError fault -> throw fault;
        case LinkageError fault -> throw fault;
        case VirtualMachineError fault -> throw fault;
        case null, default -> throw new StoreException(what + " ended with " + e.getCause(), e);
      }
    } catch (TimeoutException e) {
      throw new HangsException(what, limit, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while waiting for " + what, e);
    }
  }

  public static String reason(Throwable fault) {
    // The service loader wraps what a constructor threw.
    Throwable cause =
        fault instanceof ServiceConfigurationError && fault.getCause() != null
            ? fault.getCause()
            : fault;
    return cause instanceof StoreException ? String.valueOf(cause.getMessage()) : cause.toString();
  }

  /** Something did not come back. */
  public static final class HangsException extends StoreException {

    private static final long serialVersionUID = 1L;

    private HangsException(String what, Duration limit, Throwable cause) {
      super(what + " has not come back within " + limit.toSeconds() + " s", cause);
    }
  }
}

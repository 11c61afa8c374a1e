package ucm.testkit;

import static java.util.Objects.requireNonNull;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/**
 * Runs each step of a test (before, the test, after) on a thread of its own, for a bounded time. One that
 * does not end fails with the name of the test and what its thread was doing, all threads are dumped to
 * standard error, and the suite goes on; the thread is interrupted and left over. JUnit's own timeouts
 * wait for a thread that no interrupt ends.
 */
final class BoundedSteps implements InvocationInterceptor {

  // A test waits several times, each for the suite's patience at the most.
  private static final int WAITS = 4;

  BoundedSteps() {}

  @Override
  public void interceptBeforeEachMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test)
      throws Throwable {
    run(step, method, test);
  }

  @Override
  public void interceptTestMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test)
      throws Throwable {
    run(step, method, test);
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test)
      throws Throwable {
    run(step, method, test);
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test)
      throws Throwable {
    run(step, method, test);
  }

  private static void run(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test)
      throws Throwable {
    Duration bound =
        ((StoreContract) test.getRequiredTestInstance()).patience().multipliedBy(WAITS);
    FutureTask<Void> run = new FutureTask<>(() -> proceed(step));
    Thread thread =
        Thread.ofPlatform().daemon().name("contract-" + test.getDisplayName()).start(run);
    try {
      run.get(bound.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      throw requireNonNull(e.getCause());
    } catch (TimeoutException e) {
      String what =
          "%s.%s: %s did not end within %s; the suite goes on without its thread"
              .formatted(
                  test.getRequiredTestClass().getSimpleName(),
                  test.getDisplayName(),
                  method.getExecutable().getName(),
                  bound);
      e.setStackTrace(thread.getStackTrace());
      System.err.println(what + "; all threads:");
      Thread.getAllStackTraces()
          .forEach((other, at) -> System.err.println(other + " " + Arrays.toString(at)));
      thread.interrupt();
      throw new AssertionError(what, e);
    }
  }

  private static @Nullable Void proceed(Invocation<@Nullable Void> step) throws Exception {
    try {
      return step.proceed();
    } catch (Exception | Error e) {
      throw e;
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }
}

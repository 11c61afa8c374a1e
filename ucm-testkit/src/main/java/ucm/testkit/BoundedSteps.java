package ucm.testkit;

import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/**
 * Runs each step of a test (before, the test, after) on a thread of its own, for a bounded time. One that
 * does not end fails with the name of the test and what its thread was doing, all threads are dumped to
 * standard error, and the suite goes on; the thread is interrupted and left over.
 */
final class BoundedSteps implements InvocationInterceptor {

  // A test waits several times, each for the suite's patience at the most.
  private static final int WAITS = 4;

  BoundedSteps() {}

  @Override
  public void interceptBeforeEachMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    run(step, method, test);
  }

  @Override
  public void interceptTestMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    run(step, method, test);
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    run(step, method, test);
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    run(step, method, test);
  }

  private static void run(
      Invocation<@Nullable Void> step,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    Duration bound =
        ((StoreContract) test.getRequiredTestInstance()).patience().multipliedBy(WAITS);
    assertTimeoutPreemptively(
        bound,
        () -> {
          Object _ = step.proceed();
        },
        () -> {
          String what =
              "%s.%s: %s did not end within %s; the suite goes on without its thread"
                  .formatted(
                      test.getRequiredTestClass().getSimpleName(),
                      test.getDisplayName(),
                      method.getExecutable().getName(),
                      bound);
          System.err.println(what + "; all threads:");
          Thread.getAllStackTraces()
              .forEach((other, at) -> System.err.println(other + " " + Arrays.toString(at)));
          return what;
        });
  }
}

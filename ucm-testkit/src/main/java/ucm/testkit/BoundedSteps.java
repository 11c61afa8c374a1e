package ucm.testkit;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
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
    AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .name("contract-" + method.getExecutable().getName())
            .start(
                () -> {
                  try {
                    step.proceed();
                  } catch (Throwable t) {
                    thrown.set(t);
                  }
                });
    if (!thread.join(bound)) {
      throw hung(thread, bound, method, test);
    }
    Throwable failure = thrown.get();
    if (failure != null) {
      throw failure;
    }
  }

  private static AssertionError hung(
      Thread thread,
      Duration bound,
      ReflectiveInvocationContext<Method> method,
      ExtensionContext test) {
    StringBuilder dump = new StringBuilder();
    for (Map.Entry<Thread, StackTraceElement[]> each : Thread.getAllStackTraces().entrySet()) {
      dump.append(each.getKey()).append(' ').append(each.getKey().getState()).append('\n');
      for (StackTraceElement frame : each.getValue()) {
        dump.append("    at ").append(frame).append('\n');
      }
    }
    String what =
        test.getRequiredTestClass().getSimpleName()
            + "."
            + test.getDisplayName()
            + ": "
            + method.getExecutable().getName()
            + " did not end within "
            + bound
            + "; the suite goes on without its thread";
    Throwable doing = new Throwable("what " + thread.getName() + " was doing");
    doing.setStackTrace(thread.getStackTrace());
    System.err.println(what + "; all threads:\n" + dump);
    thread.interrupt();
    return new AssertionError(what, doing);
  }
}

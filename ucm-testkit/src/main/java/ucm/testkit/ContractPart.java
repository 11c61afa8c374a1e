package ucm.testkit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests that {@link StoreContract} is put together from; each part is an interface of its own. */
@ExtendWith(BoundedSteps.class)
interface ContractPart {

  /** The store's answers to what the suite has to know, and how it is opened and closed. */
  StoreContract suite();

  /** Runs one job on some threads at once. */
  final class AtOnce {

    static final int THREADS = 6;

    // What waits with a shorter patience is to report a wait that never ends.
    private static final Duration MARGIN = Duration.ofSeconds(60);

    /** What each thread does. */
    interface Job {
      void run(int thread) throws Exception;
    }

    private AtOnce() {}

    /** Runs a job on all threads at once and fails with the first failure of any. */
    static void run(Duration patience, Job job) throws Exception {
      CyclicBarrier start = new CyclicBarrier(THREADS);
      List<Callable<Void>> jobs = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        int thread = i;
        jobs.add(
            () -> {
              start.await();
              job.run(thread);
              return null;
            });
      }
      long waitMillis = patience.plus(MARGIN).toMillis();
      try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
        for (Future<Void> ended : threads.invokeAll(jobs, waitMillis, TimeUnit.MILLISECONDS)) {
          ended.get();
        }
      } catch (ExecutionException e) {
        if (e.getCause() instanceof AssertionError failure) {
          throw failure;
        }
        throw e;
      }
    }
  }
}

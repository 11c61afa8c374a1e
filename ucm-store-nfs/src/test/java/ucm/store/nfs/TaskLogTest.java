package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreClosedException;
import ucm.platform.libc.LibcFileOperations;
import ucm.testkit.BlockBytes;
import ucm.testkit.fault.FaultyClock;

final class TaskLogTest {

  @TempDir private Path directory;

  @Test
  void finishedTasksHaveTheLineOfTheOriginal() throws InterruptedException {
    ListAppender<ILoggingEvent> lines = new ListAppender<>();
    lines.start();
    Logger logger = (Logger) LoggerFactory.getLogger(NfsStore.class);
    Level before = logger.getLevel();
    logger.setLevel(Level.INFO);
    logger.addAppender(lines);
    try (TestNfs nfs = new TestNfs(directory)) {
      NfsStore store = nfs.open(Map.of());
      BlockIds ids = BlockBytes.ids(1, 2);
      nfs.dump(store, ids).requireOk();
      nfs.load(store, ids).requireOk();
    } finally {
      logger.detachAppender(lines);
      logger.setLevel(before);
    }
    assertThat(lines.list)
        .extracting(ILoggingEvent::getFormattedMessage)
        .filteredOn(line -> line.contains("Task("))
        // A line follows the end of its task, so the second task may be faster with its own.
        .satisfiesExactlyInAnyOrder(
            dump ->
                assertThat(dump)
                    .matches(
                        "\\[UCMNFSSTORE\\] \\[I\\] Task\\(1,D2S,8,131072\\) finished, elapsed"
                            + " \\d+\\.\\d{6}s"),
            load ->
                assertThat(load)
                    .matches(
                        "\\[UCMNFSSTORE\\] \\[I\\] Task\\(2,S2D,8,131072\\) finished, elapsed"
                            + " \\d+\\.\\d{6}s"));
  }

  @Test
  void aThreadThatRunsOutOfMemoryClosesTheStoreAndSaysSo() throws Exception {
    Logger logger = (Logger) LoggerFactory.getLogger("ucm.store.file");
    ListAppender<ILoggingEvent> lines = new ListAppender<>();
    lines.start();
    logger.addAppender(lines);
    BlockIds ids = BlockBytes.ids(1, 1);
    try (TestNfs nfs = new TestNfs(directory)) {
      NfsStore store =
          nfs.open(
              new LibcFileOperations(),
              new FaultyClock("ucm-nfs-deadline-0"),
              Map.of("timeout_ms", 100));
      // For a task that is over at once, that thread does not look at the clock.
      TestNfs.awaitThat("the store is closed", () -> isClosed(nfs, store, ids));
      TestNfs.awaitThat(
          "a line",
          () ->
              List.copyOf(lines.list).stream()
                  .map(ILoggingEvent::getFormattedMessage)
                  .anyMatch(line -> line.contains("Nfs: thread ucm-nfs-deadline-0 ended by")));
    } finally {
      logger.detachAppender(lines);
    }
  }

  private static boolean isClosed(TestNfs nfs, NfsStore store, BlockIds ids) {
    try {
      var _ = nfs.dump(store, ids).ok();
      return false;
    } catch (StoreClosedException e) {
      return true;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void filesWithoutChecksumsThatAreServedAreWarnedOfAndCounted() throws Exception {
    Logger logger = (Logger) LoggerFactory.getLogger("ucm.store.file");
    CountDownLatch counted = new CountDownLatch(1);
    List<String> warnings = new CopyOnWriteArrayList<>();
    ListAppender<ILoggingEvent> reader = new ListAppender<>();
    reader.list =
        new ArrayList<>() {
          private static final long serialVersionUID = 1L;

          @Override
          public boolean add(ILoggingEvent event) {
            if (event.getLevel() == Level.WARN) {
              warnings.add(event.getFormattedMessage());
            }
            if (event.getFormattedMessage().contains("Nfs serves 1 files without checksums")) {
              counted.countDown();
            }
            return true;
          }
        };
    reader.start();
    Level before = logger.getLevel();
    logger.setLevel(Level.WARN);
    logger.addAppender(reader);
    Path file = directory.resolve("data/7766554433221100/ffeeddccbbaa9988.dat");
    Files.createDirectories(file.getParent());
    Files.write(file, new byte[(int) TestNfs.LAYOUT.blockSize()]);
    try (TestNfs nfs = new TestNfs(directory)) {
      nfs.open(Map.of("accept_unverified", true));
      assertThat(counted.await(60, TimeUnit.SECONDS)).as("counted; %s", warnings).isTrue();
    } finally {
      logger.detachAppender(reader);
      logger.setLevel(before);
    }
    assertThat(warnings.getFirst())
        .contains("accept_unverified: true", directory.toString(), "also when it is torn");
    assertThat(warnings).anyMatch(line -> line.contains("ucm store adopt " + directory));
  }
}

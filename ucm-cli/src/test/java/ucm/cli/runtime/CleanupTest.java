package ucm.cli.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.testkit.TestProcess;

class CleanupTest {

  @TempDir private Path folder;

  /** A command that begins or ends when Ctrl-C has come, and before it was told. */
  public static final class InShutdown {

    private InShutdown() {}

    /** Does what a command does, after the process has begun to end. */
    public static void main(String[] arguments) {
      Runtime.getRuntime()
          .addShutdownHook(
              new Thread(
                  () -> {
                    try (Cleanup cleanup = new Cleanup()) {
                      Path made = cleanup.folder(Path.of(arguments[0]), "ucm-");
                      System.out.println(Files.isDirectory(made) ? "made" : "not made");
                    }
                    System.out.println(Cleanup.interrupted() ? "interrupted" : "not interrupted");
                  }));
      System.exit(0);
    }
  }

  @Test
  @Timeout(60)
  void aCommandOfAProcessThatIsEndingCleansUpAndSaysNothing() throws Exception {
    try (TestProcess process = new TestProcess(InShutdown.class, folder.toString())) {
      assertThat(process.line()).isEqualTo("made");
      assertThat(process.line()).isEqualTo("interrupted");
      assertThat(process.line()).isNull();
      assertThat(process.exitCode()).isZero();
    }
    assertThat(folder).isEmptyDirectory();
  }
}

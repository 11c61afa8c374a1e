package ucm.platform.libc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.testkit.TestProcess;

/** The same calls by way of UCM's own library and of JNA, in processes of their own: what they answer. */
final class OwnLibraryTest {

  private static final int BAD_DESCRIPTOR = 1_000_000;
  private static final int EBADF = 9;

  @TempDir private Path folder;

  /** What the calls return in a process without the library, or with it. */
  static final class Calls {

    private static final String ANSWER = "> ";

    private Calls() {}

    public static void main(String[] args) {
      System.out.println(ANSWER + "calls are made " + OwnLibrary.state());
      answers(NativePath.of(args[0])).forEach(answer -> System.out.println(ANSWER + answer));
    }

    /** Other lines are those of a log. */
    static boolean isAnswer(String line) {
      return line.startsWith(ANSWER);
    }

    private static List<String> answers(NativePath path) {
      List<String> answers = new ArrayList<>();
      answers.add("open what is absent: " + Libc.open(path, Libc.O_RDONLY, 0));
      int fd = Libc.open(path, Libc.O_RDWR | Libc.O_CREAT | Libc.O_EXCL, 0600);
      answers.add("create: " + (fd >= 0));
      answers.add(
          "create what is there: "
              + Libc.open(path, Libc.O_RDWR | Libc.O_CREAT | Libc.O_EXCL, 0600));
      MemorySegment bytes = Arena.ofAuto().allocateFrom("some bytes of a file");
      IoVector segments = new IoVector();
      segments.add(bytes.asSlice(5, 5)).add(bytes.asSlice(0, 5));
      answers.add("write two segments: " + Libc.pwritev(fd, segments, 3));
      MemorySegment read = Arena.ofAuto().allocate(20);
      answers.add("read past the end: " + Libc.preadv(fd, segments.clear().add(read), 1));
      String text =
          new String(read.toArray(ValueLayout.JAVA_BYTE), 0, 12, StandardCharsets.US_ASCII);
      answers.add(text.replace('\0', ' '));
      answers.add("read far past the end: " + Libc.preadv(fd, segments, 1L << 40));
      answers.add("read before the beginning: " + Libc.preadv(fd, segments, -1));
      answers.add("end: " + Libc.seekEnd(fd));
      answers.add("close: " + Libc.closeFile(fd));
      answers.add("read what is closed: " + Libc.preadv(BAD_DESCRIPTOR, segments, 0));
      answers.add("write what is closed: " + Libc.pwritev(BAD_DESCRIPTOR, segments, 0));
      answers.add("end of what is closed: " + Libc.seekEnd(BAD_DESCRIPTOR));
      answers.add("close what is closed: " + Libc.closeFile(BAD_DESCRIPTOR));
      return answers;
    }
  }

  private List<String> run(String file, String options) throws IOException, InterruptedException {
    ProcessBuilder builder =
        TestProcess.builder(Calls.class, folder.resolve(file).toString())
            .redirectError(ProcessBuilder.Redirect.DISCARD);
    builder.environment().put("JAVA_TOOL_OPTIONS", options);
    Process process = builder.start();
    List<String> lines = process.inputReader().lines().filter(Calls::isAnswer).toList();
    assertThat(process.waitFor()).isZero();
    return lines;
  }

  @Test
  void answersAsTheCLibraryDoesThroughJna() throws IOException, InterruptedException {
    assumeTrue(OwnLibrary.IS_LOADED, "system calls are made " + OwnLibrary.state());
    List<String> own = run("own", "-Ducm.native_library=auto");
    List<String> jna = run("jna", "-Ducm.native_library=off");
    assertThat(own.getFirst()).isEqualTo("> calls are made through UCM's own library");
    assertThat(jna.getFirst()).isEqualTo("> calls are made through JNA: ucm.native_library is off");
    assertThat(own.subList(1, own.size()))
        .isEqualTo(jna.subList(1, jna.size()))
        .containsExactly(
            "> open what is absent: " + -Errno.ENOENT,
            "> create: true",
            "> create what is there: " + -Errno.EEXIST,
            "> write two segments: 10",
            "> read past the end: 12",
            ">   bytessome ",
            "> read far past the end: 0",
            "> read before the beginning: " + -Errno.EINVAL,
            "> end: 13",
            "> close: 0",
            "> read what is closed: " + -EBADF,
            "> write what is closed: " + -EBADF,
            "> end of what is closed: " + -EBADF,
            "> close what is closed: " + -EBADF);
  }
}

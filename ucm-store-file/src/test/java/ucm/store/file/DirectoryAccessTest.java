package ucm.store.file;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;

class DirectoryAccessTest {

  @TempDir private Path folder;

  @Test
  void whatThisUserMadeIsOpenToIt() throws IOException {
    assertThat(DirectoryAccess.look(folder)).isEqualTo(Finding.ok(subject(), "none yet"));
    block();
    assertThat(DirectoryAccess.look(folder))
        .isEqualTo(Finding.ok(subject(), "can be read and written"));
  }

  /** The other user is a process of its own, which only root may start. */
  @Test
  void whatAnotherUserMadeIsClosedToThisOne() throws IOException, InterruptedException {
    assumeThat(DirectoryAccess.userId()).as("root").isEqualTo(0);
    Path block = block();
    permit(folder, "rwxrwxrwx");
    assertThat(asOther())
        .contains("FAILED", "1 of the 1 folders looked at are closed to user 1002")
        .contains(block.getParent() + " belongs to user 0 and is rwx------", "runAsUser");
    permit(block.getParent(), "rwxrwxrwx");
    assertThat(asOther()).contains("FAILED", block + " belongs to user 0 and is rw-------");
    permit(block, "rw-r--r--");
    assertThat(asOther()).contains("OK", "can be read and written");
    permit(folder, "-wx-wx-wx");
    assertThat(asOther()).contains("FAILED", "cannot be listed: " + folder);
    permit(folder, "rwx------");
  }

  private String subject() {
    return "blocks in " + folder;
  }

  private Path block() throws IOException {
    Path inside = Files.createDirectory(folder.resolve("00a"));
    permit(inside, "rwx------");
    Path block = Files.createFile(inside.resolve("00a0"));
    permit(block, "rw-------");
    return block;
  }

  private static void permit(Path path, String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }

  private String asOther() throws IOException, InterruptedException {
    String classes =
        Stream.of(DirectoryAccessTest.class, DirectoryAccess.class, Finding.class)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation().getPath())
            .distinct()
            .collect(Collectors.joining(":"));
    Process other =
        new ProcessBuilder(
                "setpriv",
                "--reuid=1002",
                "--clear-groups",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:-UsePerfData",
                "-cp",
                classes,
                Look.class.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(other.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(other.waitFor()).as(said).isZero();
    return said;
  }

  /** The process of the other user. */
  static final class Look {

    private Look() {}

    public static void main(String[] arguments) {
      Finding found = DirectoryAccess.look(Path.of(arguments[0]));
      System.out.println(found + (found.status() == Status.OK ? "" : " " + found.advice()));
    }
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code ./ucm} of a fresh clone, with a Maven that is played. */
class CloneIT {

  @TempDir private Path clone;

  @BeforeEach
  void clones() throws IOException {
    Files.copy(Path.of("../ucm"), clone.resolve("ucm"));
    Files.createDirectories(clone.resolve("ucm-dist"));
    Files.writeString(clone.resolve("pom.xml"), "");
  }

  private UcmProcess.Ended run(String maven) throws IOException {
    Path program = Files.createDirectories(clone.resolve("bin")).resolve("mvn");
    Files.writeString(program, "#!/bin/sh\n" + maven);
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    ProcessBuilder shell = new ProcessBuilder("./ucm", "--version").directory(clone.toFile());
    shell.environment().merge("PATH", program.getParent() + ":", (path, own) -> own + path);
    return UcmProcess.finish(shell.start());
  }

  @Test
  void saysWhatItBuildsWithoutABarWhereNoTerminalIs() throws IOException {
    UcmProcess.Ended ended =
        run("""
        echo '[INFO] Building ucm-api 0.2.0-SNAPSHOT        [1/2]'
        echo '[INFO] Building ucm-dist 0.2.0-SNAPSHOT       [2/2]'
        mkdir -p ucm-dist/target/image/bin
        printf '#!/bin/sh\\necho started "$@"\\n' >ucm-dist/target/image/bin/ucm
        chmod +x ucm-dist/target/image/bin/ucm
        """)
            .requireOk();
    assertThat(ended.out()).isEqualTo("started --version\n");
    assertThat(ended.err().lines())
        .contains("ucm: building ucm-api (1/2)", "ucm: building ucm-dist (2/2)");
    assertThat(ended.err()).doesNotContain("\r", "[INFO]");
  }

  @Test
  void saysWhyABuildFailedAndWhereTheRestIs() throws IOException {
    UcmProcess.Ended ended =
        run(
            """
            echo '[INFO] Building ucm-api 0.2.0-SNAPSHOT        [1/2]'
            echo '[ERROR] no JDK -> [Help 1]'
            exit 1
            """);
    assertThat(ended.exitCode()).as(ended.all()).isEqualTo(1);
    assertThat(ended.err()).contains("\nno JDK\n", "build.log").doesNotContain("[Help 1]");
    assertThat(clone.resolve("ucm-dist/target/build.log")).content().contains("Building ucm-api");
  }
}

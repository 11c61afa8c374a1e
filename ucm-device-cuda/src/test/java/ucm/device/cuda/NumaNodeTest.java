package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class NumaNodeTest {

  @TempDir private Path devices;

  @Test
  void isWhatTheKernelSays() throws IOException {
    write("0000:b1:00.0", "1\n");
    assertThat(NumaNode.of(devices, "0000:B1:00.0")).isEqualTo(1);
  }

  @Test
  void isUnknownWithoutAnAnswer() throws IOException {
    write("0000:b1:00.0", "-1\n");
    write("0000:b2:00.0", "none\n");
    assertThat(NumaNode.of(devices, "0000:B1:00.0")).isEqualTo(-1);
    assertThat(NumaNode.of(devices, "0000:B2:00.0")).isEqualTo(-1);
    assertThat(NumaNode.of(devices, "0000:B3:00.0")).isEqualTo(-1);
    assertThat(NumaNode.of(devices, "")).isEqualTo(-1);
  }

  private void write(String busId, String text) throws IOException {
    Files.writeString(Files.createDirectories(devices.resolve(busId)).resolve("numa_node"), text);
  }
}

package ucm.pipeline.config;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ConfigReportTest {

  @Test
  void keepsBeginAndEndOfALongText() {
    String text = "io_direct is true or false; found " + "x".repeat(900_000) + ": set it to true";
    assertThat(ConfigReport.cut(text))
        .startsWith("io_direct is true or false")
        .endsWith(": set it to true")
        .hasSizeLessThan(1200);
    assertThat(ConfigReport.cut("short")).isEqualTo("short");
  }
}

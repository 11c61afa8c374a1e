package ucm.bench.serve;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ServeReportTest {

  @Test
  void saysLongerWhereUcmTakesLonger() {
    assertThat(ServeReport.meanText(100, 50)).contains("50.0% shorter");
    assertThat(ServeReport.meanText(100, 173.6)).contains("73.6% longer").doesNotContain("-");
  }
}

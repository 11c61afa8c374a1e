package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.cli.output.Spread;

class BenchMeasureTest {

  @Test
  void comparesPairByPairAndNotTheMedians() {
    BenchMeasure measure = new BenchMeasure("load", "GB/s", "memcpy");
    measure.add(1, 10);
    measure.add(8, 2);
    measure.add(3, 3);
    assertThat(measure.values()).isEqualTo(new Spread(3, 1, 8));
    assertThat(measure.limits()).isEqualTo(new Spread(3, 2, 10));
    assertThat(measure.ratios()).isEqualTo(new Spread(1, 0.1, 4));
  }

  @Test
  void takesTheMiddleOfTheTwoMiddleValuesOfAnEvenNumber() {
    assertThat(Spread.of(new double[] {4, 1, 3, 2})).isEqualTo(new Spread(2.5, 1, 4));
  }

  @Test
  void keepsManyRounds() {
    BenchMeasure measure = new BenchMeasure("load", "GB/s", "memcpy");
    for (int i = 1; i <= 99; i++) {
      measure.add(i, 1);
    }
    assertThat(measure.ratios()).isEqualTo(new Spread(50, 1, 99));
  }
}

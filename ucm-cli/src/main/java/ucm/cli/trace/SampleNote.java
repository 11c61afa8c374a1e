package ucm.cli.trace;

import java.util.ArrayList;
import java.util.List;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;

/**
 * From which share of the blocks the figures of a report are, 1 when they are exact.
 *
 * @param simulated what was simulated or looked at block by block
 * @param curve the LRU curve, and with it unique blocks, ideal hit rate and knee
 */
public record SampleNote(double simulated, double curve) {

  public boolean exact() {
    return simulated == 1 && curve == 1;
  }

  public Fields addTo(Fields data) {
    return data.with("exact", exact())
        .with("sample_rate", simulated)
        .with("curve_sample_rate", curve);
  }

  /** For below a table: which figures are estimated, and what is exact all the same. */
  public String text(String ofSimulated, String ofCurve) {
    List<String> estimated = new ArrayList<>();
    if (simulated < 1) {
      estimated.add(ofSimulated + " from " + Figures.percent(simulated));
    }
    if (curve < 1) {
      estimated.add(ofCurve + " from " + Figures.percent(curve));
    }
    return "Estimated from a sample of the blocks: "
        + String.join("; ", estimated)
        + ". Exact: requests, time span, tokens, number of blocks asked for.";
  }
}

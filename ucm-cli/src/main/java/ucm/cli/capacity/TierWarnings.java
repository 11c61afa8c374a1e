package ucm.cli.capacity;

import java.util.Optional;
import ucm.cli.output.Figures;

/** What the figures of simulated tiers do not show by themselves; sentences without their end. */
final class TierWarnings {

  private static final double HOURS_A_DAY = 24;

  private TierWarnings() {}

  /**
   * Requests do not wait for each other in the simulation, which holds only while there are enough
   * GPUs.
   */
  static Optional<String> gpus(double askedHours, int gpus, double days) {
    double hours = days * HOURS_A_DAY;
    if (askedHours <= gpus * hours) {
      return Optional.empty();
    }
    return Optional.of(
        String.format(
            "with these tiers the trace asks for %s GPU hours within %s hours, and %s GPU(s) give"
                + " %s: requests would wait for each other, and the times to first token do not"
                + " hold; simulate more --nodes, --ranks or --tp",
            Figures.fixed(askedHours, 2),
            Figures.fixed(hours, 2),
            gpus,
            Figures.fixed(gpus * hours, 2)));
  }

  static Optional<String> wear(double writesADay, double endured) {
    if (writesADay <= endured) {
      return Optional.empty();
    }
    return Optional.of(
        String.format(
            "the trace writes the drives %s times a day, and they endure %s (--endurance): take"
                + " more --storage, drives that endure more, or --write on-eviction",
            Figures.fixed(writesADay, 2), Figures.fixed(endured, 2)));
  }
}

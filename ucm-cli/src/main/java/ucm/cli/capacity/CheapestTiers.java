package ucm.cli.capacity;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.DoubleStream;
import org.jspecify.annotations.Nullable;
import ucm.cli.output.Figures;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.ServingPlan;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.ServingSimulation;
import ucm.lite.tier.TierPlan;

/**
 * The cheapest capacities with which nine of ten requests get their first token in time; or, where
 * none do, those with which they come nearest.
 *
 * @param wantedSeconds 90th percentile of the time to first token that was asked for
 * @param plan the cluster with these capacities
 * @param serving what it comes to
 * @param costs a month
 */
record CheapestTiers(double wantedSeconds, TierPlan plan, ServingResult serving, TierCosts costs) {

  private static final double[] SHARES = {0, 0.125, 0.25, 0.5, 0.75, 1};

  /** Simulates parts of the capacities of a plan. Blocks until done. */
  static CheapestTiers find(
      double wantedSeconds,
      RecordedTrace trace,
      TierPlan tiers,
      TouchOrder order,
      ServingPlan engines,
      Function<Candidate, TierCosts> costs)
      throws InterruptedException {
    @Nullable CheapestTiers best = null;
    for (long dram : parts(tiers.dramBlocks())) {
      for (long storage : parts(tiers.storageBlocks())) {
        TierPlan plan = tiers.withCapacities(tiers.hbmBlocks(), dram, storage);
        ServingResult serving = ServingSimulation.run(trace, plan, order, engines).serving();
        CheapestTiers found =
            new CheapestTiers(
                wantedSeconds, plan, serving, costs.apply(new Candidate(plan, serving)));
        if (best == null || found.isBetterThan(best)) {
          best = found;
        }
      }
    }
    if (best == null) {
      throw new IllegalStateException("no capacity was tried");
    }
    return best;
  }

  /** Capacities that were simulated, and what they came to. */
  record Candidate(TierPlan plan, ServingResult serving) {}

  private static long[] parts(long blocks) {
    return DoubleStream.of(SHARES).mapToLong(share -> (long) (share * blocks)).distinct().toArray();
  }

  private boolean isBetterThan(CheapestTiers other) {
    if (inTime() != other.inTime()) {
      return inTime();
    }
    return inTime()
        ? costs.with() < other.costs.with()
        : serving.ttftWith().p90() < other.serving.ttftWith().p90();
  }

  /** Whether the time that was wanted is reached. */
  boolean inTime() {
    return serving.ttftWith().p90() <= wantedSeconds;
  }

  /** A sentence for people. */
  String sentence(long blockBytes) {
    return String.format(
        "Cheapest for a TTFT P90 of %s s: %s%s GB of DRAM a machine and %s GB of storage: TTFT P90"
            + " %s s for %s a month.",
        wantedSeconds,
        inTime() ? "" : "none of those tried is enough; nearest is ",
        Figures.gigabytes((double) plan.dramBlocks() * blockBytes),
        Figures.gigabytes((double) plan.storageBlocks() * blockBytes),
        Figures.fixed(serving.ttftWith().p90(), 3),
        Figures.fixed(costs.with(), 2));
  }

  Map<String, Object> data(long blockBytes) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("wanted_ttft_p90", wantedSeconds);
    data.put("reached", inTime());
    data.put("ttft_p90", serving.ttftWith().p90());
    data.put("dram_bytes_a_node", plan.dramBlocks() * blockBytes);
    data.put("storage_bytes", plan.storageBlocks() * blockBytes);
    data.put("costs", costs.data());
    return data;
  }
}

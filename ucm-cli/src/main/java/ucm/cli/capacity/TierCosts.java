package ucm.cli.capacity;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.Table;
import ucm.lite.curve.TraceSummary;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.ServingPlan;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.ServingSimulation;
import ucm.lite.tier.TierPlan;

/**
 * What serving costs a month when the load stays that of the trace. GPUs are paid by the hour they
 * compute or wait for a load; DRAM, disks and storage for all of their capacity; HBM comes with the GPUs.
 *
 * @param without GPUs when everything is computed
 * @param gpus GPUs with the tiers
 * @param dram capacity of all machines
 * @param storage capacity of all machines, their local disks included
 */
record TierCosts(double without, double gpus, double dram, double storage) {

  private static final double MILLIS_A_DAY = 86_400_000;
  private static final double DAYS_A_MONTH = 365.25 / 12;
  private static final double SECONDS_AN_HOUR = 3600;
  private static final double[] SHARES = {0, 0.125, 0.25, 0.5, 0.75, 1};

  /** What costs are counted from, with the GPUs of an engine and the days that the trace takes. */
  record Basis(PriceOptions prices, long blockBytes, int gpus, double days) {

    TierCosts of(TierPlan plan, ServingResult serving) {
      double ofSecond =
          PriceOptions.price(prices.gpuHour) * gpus / SECONDS_AN_HOUR * DAYS_A_MONTH / days;
      return new TierCosts(
          serving.computeSecondsWithout() * ofSecond,
          (serving.computeSecondsWith() + serving.loadSeconds()) * ofSecond,
          PriceOptions.price(prices.dramGbMonth) * gigabytes(plan.dramBlocks() * plan.nodes()),
          PriceOptions.price(prices.ssdGbMonth)
              * gigabytes(storageBlocks(plan) + diskBlocks(plan)));
    }

    private double gigabytes(long blocks) {
      return (double) blocks * blockBytes / Figures.GB;
    }
  }

  static double days(TraceSummary summary) {
    return summary.timeSpanMillis() / MILLIS_A_DAY;
  }

  /** Blocks in the storage of all machines. */
  static long storageBlocks(TierPlan plan) {
    return plan.storageBlocks() * (plan.sharedStorage() ? 1 : plan.nodes());
  }

  /** Blocks on the local disks of all machines. */
  static long diskBlocks(TierPlan plan) {
    return plan.diskBlocks() * plan.nodes();
  }

  double with() {
    return gpus + dram + storage;
  }

  Table table() {
    Table table = new Table("COST A MONTH (YOUR PRICES)", "GPUS", "DRAM", "STORAGE", "IN ALL");
    table.row("without cache", money(without), "-", "-", money(without));
    table.row("with these tiers", money(gpus), money(dram), money(storage), money(with()));
    return table;
  }

  /** Terms of an HTML report, each with what it comes to. */
  List<List<String>> facts() {
    return List.of(
        List.of("Cost a month without cache", money(without)),
        List.of(
            "Cost a month with these tiers",
            money(with()),
            "GPUs " + money(gpus),
            "DRAM " + money(dram) + ", storage " + money(storage)));
  }

  private static String money(double amount) {
    return Figures.fixed(amount, 2);
  }

  Fields data() {
    return new Fields()
        .with("without_cache_a_month", without)
        .with("with_tiers_a_month", with())
        .with("gpus_a_month", gpus)
        .with("dram_a_month", dram)
        .with("storage_a_month", storage);
  }

  /**
   * The cheapest capacities with which nine of ten requests get their first token in time; or, where
   * none do, those with which they come nearest.
   *
   * @param wanted 90th percentile of the time to first token that was asked for, in seconds
   */
  record Cheapest(double wanted, TierPlan plan, ServingResult serving, TierCosts costs) {

    /** Simulates parts of the capacities of a plan. Blocks until done. */
    static Cheapest find(
        double wanted,
        RecordedTrace trace,
        TierPlan tiers,
        TouchOrder order,
        ServingPlan engines,
        Basis basis)
        throws InterruptedException {
      List<Cheapest> tried = new ArrayList<>();
      for (long dram : parts(tiers.dramBlocks())) {
        for (long disk : parts(tiers.diskBlocks())) {
          for (long storage : parts(tiers.storageBlocks())) {
            TierPlan plan = tiers.withCapacities(tiers.hbmBlocks(), dram, disk, storage);
            ServingResult serving = ServingSimulation.run(trace, plan, order, engines).serving();
            tried.add(new Cheapest(wanted, plan, serving, basis.of(plan, serving)));
          }
        }
      }
      Comparator<Cheapest> inTimeFirst = Comparator.comparing(one -> !one.inTime());
      return Collections.min(
          tried,
          inTimeFirst.thenComparingDouble(one -> one.inTime() ? one.costs.with() : one.ttft()));
    }

    private static long[] parts(long blocks) {
      return Arrays.stream(SHARES).mapToLong(share -> (long) (share * blocks)).distinct().toArray();
    }

    private double ttft() {
      return serving.ttftWith().p90();
    }

    private boolean inTime() {
      return ttft() <= wanted;
    }

    String sentence(long blockBytes) {
      return String.format(
          "Cheapest for a TTFT P90 of %s s: %s%s GB of DRAM a machine%s and %s GB of storage: TTFT"
              + " P90 %s s for %s a month.",
          wanted,
          inTime() ? "" : "none of those tried is enough; nearest is ",
          gigabytes(plan.dramBlocks(), blockBytes),
          plan.diskBlocks() == 0
              ? ""
              : ", " + gigabytes(plan.diskBlocks(), blockBytes) + " GB of disks a machine",
          gigabytes(plan.storageBlocks(), blockBytes),
          Figures.fixed(ttft(), 3),
          money(costs.with()));
    }

    private static String gigabytes(long blocks, long blockBytes) {
      return Figures.gigabytes((double) blocks * blockBytes);
    }

    Fields data(long blockBytes) {
      return new Fields()
          .with("wanted_ttft_p90", wanted)
          .with("reached", inTime())
          .with("ttft_p90", ttft())
          .with("dram_bytes_a_node", plan.dramBlocks() * blockBytes)
          .with("disk_bytes_a_node", plan.diskBlocks() * blockBytes)
          .with("storage_bytes", plan.storageBlocks() * blockBytes)
          .with("costs", costs.data());
    }
  }
}

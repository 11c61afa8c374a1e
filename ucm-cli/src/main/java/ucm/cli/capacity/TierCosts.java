package ucm.cli.capacity;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.cli.output.Figures;
import ucm.cli.output.Table;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.TierPlan;

/**
 * What serving costs a month when the load stays that of the trace. GPUs are paid by the hour they
 * compute or wait for a load; DRAM and storage for all of their capacity; HBM comes with the GPUs.
 *
 * @param without GPUs when everything is computed
 * @param gpus GPUs with the tiers
 * @param dram capacity of all machines
 * @param storage capacity of all machines
 */
record TierCosts(double without, double gpus, double dram, double storage) {

  private static final double DAYS_A_MONTH = 365.25 / 12;
  private static final double SECONDS_AN_HOUR = 3600;
  private static final double GB = 1e9;

  /** Adds up for a trace of so many days. */
  static TierCosts of(
      TierPrices prices,
      TierPlan plan,
      long blockBytes,
      int tensorParallel,
      ServingResult serving,
      double days) {
    double ofSecond = prices.gpuHour() * tensorParallel / SECONDS_AN_HOUR * DAYS_A_MONTH / days;
    return new TierCosts(
        serving.computeSecondsWithout() * ofSecond,
        (serving.computeSecondsWith() + serving.loadSeconds()) * ofSecond,
        prices.dramGbMonth() * gigabytes(plan.dramBlocks() * plan.nodes(), blockBytes),
        prices.ssdGbMonth() * gigabytes(storageBlocks(plan), blockBytes));
  }

  private static double gigabytes(long blocks, long blockBytes) {
    return (double) blocks * blockBytes / GB;
  }

  /** Blocks in the storage of all machines. */
  static long storageBlocks(TierPlan plan) {
    return plan.storageBlocks() * (plan.sharedStorage() ? 1 : plan.nodes());
  }

  double with() {
    return gpus + dram + storage;
  }

  void print(PrintWriter out) {
    out.println();
    Table table = new Table("COST A MONTH (YOUR PRICES)", "GPUS", "DRAM", "STORAGE", "IN ALL");
    table.row("without cache", money(without), "-", "-", money(without));
    table.row("with these tiers", money(gpus), money(dram), money(storage), money(with()));
    table.print(out);
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

  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("without_cache_a_month", without);
    data.put("with_tiers_a_month", with());
    data.put("gpus_a_month", gpus);
    data.put("dram_a_month", dram);
    data.put("storage_a_month", storage);
    return data;
  }
}

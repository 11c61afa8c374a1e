package ucm.lite.tier;

import ucm.lite.curve.QuantileHistogram;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.TierSimulation.TokensFound;

/** Runs the tiers of a cluster and adds up what they are worth in time. */
public final class ServingSimulation {
  private static final double MICROSECOND = 1e-6;

  private final ServingPlan plan;
  private final QuantileHistogram without = new QuantileHistogram(MICROSECOND);
  private final QuantileHistogram with = new QuantileHistogram(MICROSECOND);
  private double computeWithout;
  private double computeWith;
  private double loading;

  private ServingSimulation(ServingPlan plan) {
    this.plan = plan;
  }

  public record Result(TierResult tiers, ServingResult serving) {}

  /** Runs a plan over a trace. Blocks until done. */
  public static Result run(RecordedTrace trace, TierPlan tiers, TouchOrder order, ServingPlan plan)
      throws InterruptedException {
    ServingSimulation simulation = new ServingSimulation(plan);
    TierResult result = TierSimulation.run(trace, tiers, order, simulation::served);
    return new Result(result, simulation.result());
  }

  private void served(NumberedRequest request, TokensFound found) {
    int prompt = request.inputTokens;
    if (prompt == 0) {
      return;
    }
    // The last token is always computed: its output is the first token.
    int there = Math.min(prompt - 1, found.all());
    double whole = plan.computeSeconds(0, prompt);
    double rest = plan.computeSeconds(there, prompt);
    double load = plan.loadSeconds(found.dram(), found.disk(), found.storage());
    without.add(whole);
    with.add(rest + load);
    computeWithout += whole;
    computeWith += rest;
    loading += load;
  }

  private ServingResult result() {
    return new ServingResult(
        without.quantiles(), with.quantiles(), computeWithout, computeWith, loading);
  }
}

package ucm.lite.tier;

import ucm.lite.curve.Quantiles;

/**
 * What the tiers are worth in time, from <em>simulated compute</em>. Seconds; requests do not wait
 * for each other, and loading does not overlap with computing.
 *
 * @param ttftWithout time to first token of a request when everything is computed
 * @param ttftWith time to first token when what the tiers hold is loaded
 * @param computeSecondsWithout engines' time for all prompts without a cache
 * @param computeSecondsWith engines' time for what the tiers do not hold
 * @param loadSeconds time spent loading
 */
public record ServingResult(
    Quantiles ttftWithout,
    Quantiles ttftWith,
    double computeSecondsWithout,
    double computeSecondsWith,
    double loadSeconds) {

  /**
   * Seconds of engine time saved, the time engines wait for loads counted as used; may be negative.
   */
  public double savedSeconds() {
    return computeSecondsWithout - computeSecondsWith - loadSeconds;
  }
}

package ucm.lite.policy;

import ucm.lite.curve.CacheHits;

/**
 * What a policy hits at one capacity.
 *
 * @param policy the policy
 * @param hits its hits; of {@link SimulatedPolicy#OPTIMAL} a bound for all others
 */
public record PolicyHits(SimulatedPolicy policy, CacheHits hits) {}

package ucm.cli.capacity;

import java.util.Optional;
import ucm.lite.tier.ServingResult;

/**
 * What tiers are worth.
 *
 * @param serving in time
 * @param costs in money; empty without prices, or when the trace takes no time
 * @param cheapest the capacity to buy; empty unless a time to first token was asked for
 */
record TierWorth(
    ServingResult serving, Optional<TierCosts> costs, Optional<CheapestTiers> cheapest) {}

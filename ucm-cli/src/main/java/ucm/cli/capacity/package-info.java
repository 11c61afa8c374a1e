/**
 * {@code ucm trace tiers}: what tiers of memory and drives would save and cost. A trace, a plan
 * and prices go in, a report comes out. Simulations themselves are in {@code ucm.lite.tier}.
 */
package ucm.cli.capacity;

/**
 * Simulations of eviction policies, and the optimum, at given capacities. A recorded trace goes
 * in, hits come out. Nothing here is used by a store.
 */
package ucm.lite.policy;

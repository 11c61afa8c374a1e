/**
 * Tiers of storage for engines: models and their bytes per token, routing, write
 * policies, time to first token. A recorded trace and a plan go in, hits and times come out.
 * Money is counted elsewhere.
 */
package ucm.lite.tier;

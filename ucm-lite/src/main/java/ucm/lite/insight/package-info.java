/**
 * What a trace is like besides its hits: hot prefixes, arrivals over time, reuse. Requests go in,
 * one summary comes out. It knows no cache.
 */
package ucm.lite.insight;

/**
 * What is measured of stores: dumps, loads, look-ups, layer by layer. A pipeline goes in, results come out. It simulates no engine.
 */
package ucm.bench.store;

/**
 * The experiment of {@code ucm bench serve}: cases, their storage, time to first token with and
 * without hits. Options go in, a table comes out. The engine is in {@link ucm.bench.simulator}.
 */
package ucm.bench.serve;

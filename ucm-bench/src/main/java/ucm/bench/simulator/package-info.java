/**
 * A simulated inference engine that drives the connector as vLLM does: continuous batching, chunked
 * prefill, paged KV memory, preemption, tensor-parallel ranks as threads.
 *
 * <pre>
 *   EngineSimulator   requests arrive, steps follow one another
 *     BatchScheduler  chooses what a step computes; asks the connector what need not be
 *       PagedKvMemory which blocks are whose
 *     ServeEngine     the same step on each rank: loads and saves layer by layer
 *       LayerBarrier  waits for as long as a GPU would compute a layer
 * </pre>
 *
 * <p>Compute is simulated by waiting; look-ups, block names and the movement of bytes are real. What a GPU
 * would write is made from the names of the blocks while the engine's clock stands still, and every loaded
 * byte is compared in the same way.
 */
package ucm.bench.simulator;

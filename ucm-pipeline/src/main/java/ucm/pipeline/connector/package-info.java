/**
 * What an inference engine talks to: a scheduler side, one for each engine, and a worker side, one
 * for each tensor-parallel rank.
 *
 * <pre>
 *   scheduler:  matchedTokens -> allocated -> plan ... plan -> finished      once a request
 *                                              |
 *                                           StepPlan: plain data, handed to every rank
 *                                              v
 *   worker:     startLoad -> (waitForLayerLoad -> saveLayer) per layer -> waitForSave -> takeLoadErrors
 * </pre>
 *
 * <p>Begin at {@link ucm.pipeline.connector.ConnectorSetup}. The calls and their order are those of
 * vLLM's KV connector interface (version 1), so that an adapter for an engine of that kind adds
 * nothing but names. All types that travel between the two sides are records of numbers, texts and
 * packed ids.
 */
package ucm.pipeline.connector;

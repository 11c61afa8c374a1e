/**
 * For engines in Java whose ranks are processes: both sides of the connector over the daemon {@code ucm serve}.
 *
 * <pre>
 *   scheduler's process:  RemoteScheduler   matchedTokens -> allocated -> plan ... plan -> finished
 *                                                                         |
 *                                              StepPlan, as bytes, handed to every rank
 *                                                                         v
 *   process of a rank:    WorkerConnector   startLoad -> (waitForLayerLoad -> saveLayer) -> waitForSave
 *                         over slots that the rank shares with the daemon
 * </pre>
 *
 * <p>Begin at {@link ucm.server.client.RemoteSetup}. It speaks the protocol of {@code docs/protocol.md} and
 * knows nothing of the daemon's inside.
 */
package ucm.server.client;

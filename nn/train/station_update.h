/* station_update.h - a station's updates: what its shards' optimizers and norms are made of, and what is
 * measured and updated.
 *
 * Must not know: how bytes travel, in which order things happen (order.h). */
#ifndef CEK_NN_TRAIN_STATION_UPDATE_H
#define CEK_NN_TRAIN_STATION_UPDATE_H

#include "nn/train/station.h"

/* Optimizers, norms, blocks, and the commands of whole steps; what the station holds of them is closed with it. */
CEK__CHECKED cek_status cek__station_updates_make(cek__station *station, const cek__conductor_options *options);
/* Adds the device bytes of the updates of one shard. */
CEK__CHECKED cek_status cek__station_shard_bytes(const cek__rules *rules, const cek__shard *shard, uint64_t *bytes);

/* MEASURE, VERDICT and UPDATE; `side`: of the stream. */
CEK__CHECKED cek_status cek__station_measure(cek__station *station, const cek__action *action, size_t side,
                                             cek_stream *stream);
CEK__CHECKED cek_status cek__station_verdict(cek__station *station, const cek__verdict *verdict);
CEK__CHECKED cek_status cek__station_update(cek__station *station, const cek__action *action, size_t side,
                                            cek_stream *stream);

#endif

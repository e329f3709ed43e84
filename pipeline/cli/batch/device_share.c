/*
 * Shares of unequal devices; see device_share.h.
 */
#include "pipeline/cli/batch/device_share.h"

static const double slower_by = 4;

double device_speed_now(const device_speed *speed, double now_s) {
  const double busy_s = speed->busy_s + (speed->began_s > 0 ? now_s - speed->began_s : 0);
  return speed->pixels > 0 && busy_s > 0 ? speed->pixels / busy_s : speed->guess;
}

void device_speed_begin(device_speed *speed, double now_s) { speed->began_s = now_s; }

void device_speed_end(device_speed *speed, double now_s) {
  if (speed->began_s > 0) speed->busy_s += now_s - speed->began_s;
  speed->began_s = 0;
}

bool device_share_is_slow(const device_share *share) { return share->others >= slower_by * share->own; }

bool device_share_leaves(const device_share *share) {
  return device_share_is_slow(share) && share->taken * share->others > share->waiting * share->own;
}

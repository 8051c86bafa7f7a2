-- What a profile file of version 4 lacks, laid over its tables: the column `pieces` of `tile_profile_tile`, for which no profile asks,
-- and the lines of the host that made things.

CREATE TEMP TABLE made_at (kind, number, place);

//! What was acknowledged and is gone from the log: a segment that is missing, wherever it stood,
//! one that is cut, and damage to what was written last. And what only looks like it: a Cassandra
//! that replayed the log, a log that was drained, a directory that an operator emptied.

use super::*;

/// What is done to the log's directory while the node is down.
type Deed = Rc<dyn Fn(Env) -> Done>;
type Done = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// The log's settings of a test.
fn settings(compressed: bool, ignore: bool) -> LogSettings {
    let compression = lz4().filter(|_| compressed);
    LogSettings { compression, ignore_replay_errors: ignore, ..LogSettings::default() }
}

/// Writes rows that stay in the log, in several segments, and waits a while after the last one.
fn writes(compressed: bool, pause: Duration) -> Life<Found> {
    Box::new(move |env, mesh| {
        Box::pin(async move {
            let opened = open(&env, mesh, settings(compressed, false)).await?;
            opened.node.begin_log().await?;
            for n in 0..ROWS {
                write(&opened.engine, n).await?;
            }
            env.sleep(pause).await;
            Ok((values(&opened.engine).await?, opened.replay))
        })
    })
}

/// Starts on what a deed left, and begins a log of its own.
fn starts(compressed: bool, ignore: bool, deed: Deed) -> Life<Found> {
    Box::new(move |env, mesh| {
        let deed = Rc::clone(&deed);
        Box::pin(async move {
            deed(env.clone()).await;
            let opened = open(&env, mesh, settings(compressed, ignore)).await?;
            opened.node.begin_log().await?;
            Ok((values(&opened.engine).await?, opened.replay))
        })
    })
}

fn nothing() -> Deed {
    Rc::new(|_| Box::pin(async {}))
}

/// What was found after a deed: with the setting that ignores errors, a start more.
fn after(compressed: bool, pause: Duration, ignore: bool, deed: Deed) -> Result<Found, String> {
    let first = writes(compressed, pause);
    let mut found = lives(vec![first, starts(compressed, ignore, deed)]);
    found.remove(1)
}

async fn segment_paths(env: &Env) -> Vec<PathBuf> {
    let files = segment_files(env, &directory()).await.expect("listed");
    files.into_iter().map(|file| file.path).collect()
}

/// Bytes of a file without the zeros at its end.
async fn used(env: &Env, path: &Path) -> Vec<u8> {
    let mut bytes = env.read_file(path, 1 << 20).await.expect("read");
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

/// Removes the segment that is so far from the end.
fn without(from_end: usize) -> Deed {
    Rc::new(move |env| {
        Box::pin(async move {
            let paths = segment_paths(&env).await;
            assert!(paths.len() > 4, "{paths:?}");
            env.remove_file(&paths[paths.len() - 1 - from_end]).await.expect("removed");
        })
    })
}

/// Changes the last segment with records.
fn last_changed(change: fn(&mut Vec<u8>)) -> Deed {
    Rc::new(move |env| {
        Box::pin(async move {
            for path in segment_paths(&env).await.into_iter().rev() {
                let mut bytes = used(&env, &path).await;
                if bytes.len() > 500 {
                    let length = env.read_file(&path, 1 << 20).await.expect("read").len();
                    let before = bytes.len();
                    change(&mut bytes);
                    if bytes.len() == before {
                        bytes.resize(length, 0);
                    }
                    return env.write_file_atomically(path, bytes).await.expect("written");
                }
            }
            panic!("no segment has records");
        })
    })
}

/// What a Cassandra does that starts on the log: it makes a segment, replays ours and removes the
/// `gone` oldest.
fn cassandra(gone: usize, removed_last: bool) -> Deed {
    Rc::new(move |env| {
        Box::pin(async move {
            let paths = segment_paths(&env).await;
            let [.., (id, bytes)] = segments();
            let path = directory().join(format!("CommitLog-7-{id}.log"));
            env.write_file_atomically(path, bytes).await.expect("written");
            for path in paths.iter().take(gone) {
                env.remove_file(path).await.expect("removed");
            }
            if removed_last {
                env.remove_file(paths.last().expect("one")).await.expect("removed");
            }
        })
    })
}

const NO_PAUSE: Duration = Duration::from_millis(200);

#[test]
fn a_segment_that_is_gone_stops_the_start_wherever_it_stood() {
    for compressed in [false, true] {
        for from_end in 0..4 {
            let refused = after(compressed, NO_PAUSE, false, without(from_end)).expect_err("gone");
            assert!(refused.contains("/commitlog/CommitLog-7-17"), "{refused}");
            assert!(refused.contains("the segment is missing"), "{refused}");
            let (values, replay) =
                after(compressed, NO_PAUSE, true, without(from_end)).expect("ignored");
            assert_eq!(replay.missing.len(), 1);
            // the last one was made in advance
            assert_eq!(values.len() < ROWS as usize, from_end > 0, "{}", values.len());
        }
    }
}

#[test]
fn what_was_ignored_once_is_not_missed_again() {
    let last = starts(false, false, nothing());
    let found = lives(vec![writes(false, NO_PAUSE), starts(false, true, without(2)), last]);
    let (values, replay) = found[2].as_ref().expect("starts");
    assert!(values.len() < ROWS as usize && replay.missing.is_empty());
}

#[test]
fn a_segment_that_is_cut_in_its_header_stops_the_start() {
    for compressed in [false, true] {
        for cut in [|bytes: &mut Vec<u8>| bytes.truncate(5), |bytes: &mut Vec<u8>| bytes.clear()] {
            let refused = after(compressed, NO_PAUSE, false, last_changed(cut)).expect_err("cut");
            assert!(refused.contains("it is damaged from byte 0 on"), "{refused}");
            let (_, replay) =
                after(compressed, NO_PAUSE, true, last_changed(cut)).expect("ignored");
            assert_eq!(replay.damaged.len(), 1);
        }
    }
}

#[test]
fn damage_to_what_was_written_last_stops_the_start() {
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| {
            // before the mark, in the last record
            let at = bytes.len() - 60;
            bytes[at] ^= 1;
        },
        |bytes| {
            let from = bytes.len() - 200;
            bytes[from..].fill(0);
        },
        |bytes| bytes.truncate(bytes.len() - 60),
    ];
    // without compression a mark follows at once, else the list tells a second later
    for (compressed, pause) in [(false, Duration::from_millis(200)), (true, Duration::from_secs(2))]
    {
        for (number, damage) in damages.into_iter().enumerate() {
            // a mark that is damaged too tells nothing; the file's length does
            if !compressed && number == 1 {
                continue;
            }
            let refused = after(compressed, pause, false, last_changed(damage));
            let refused = refused.expect_err(&format!("damage {number}"));
            assert!(refused.contains("in a way that no crash explains"), "{refused}");
        }
        let (values, _) = after(compressed, pause, false, nothing()).expect("starts");
        assert_eq!(values, written(ROWS));
    }
}

#[test]
fn a_replayed_segment_is_missed_until_it_is_flushed() {
    let middle = starts(false, false, nothing());
    let first = || {
        starts(
            false,
            false,
            Rc::new(move |env| {
                Box::pin(async move {
                    let paths = segment_paths(&env).await;
                    env.remove_file(&paths[0]).await.expect("removed");
                })
            }),
        )
    };
    let found = lives(vec![writes(false, NO_PAUSE), middle, first()]);
    let refused = found[2].as_ref().expect_err("gone");
    assert!(refused.contains("the segment is missing"), "{refused}");
    let flushes: Life<Found> = Box::new(|env, mesh| {
        Box::pin(async move {
            let opened = open(&env, mesh, settings(false, false)).await?;
            opened.node.begin_log().await?;
            opened.node.flush(table().id).await?;
            env.sleep(Duration::from_secs(1)).await;
            assert!(segment_paths(&env).await.len() < 5, "removed");
            Ok((values(&opened.engine).await?, opened.replay))
        })
    });
    let found = lives(vec![writes(false, NO_PAUSE), flushes, starts(false, false, nothing())]);
    assert_eq!(found[2].as_ref().expect("starts").0, written(ROWS));
}

#[test]
fn a_cassandra_that_replayed_the_log_leaves_nothing_missing() {
    for gone in [usize::MAX, 3, 0] {
        let (_, replay) = after(false, NO_PAUSE, false, cassandra(gone, false)).expect("starts");
        assert!(replay.missing.is_empty());
    }
    let refused = after(false, NO_PAUSE, false, cassandra(2, true)).expect_err("not by it");
    assert!(refused.contains("the segment is missing"), "{refused}");
    // what it leaves is missed if it goes in its turn
    let gone: Deed = Rc::new(|env| {
        Box::pin(async move {
            let (id, _) = segments()[3];
            let path = directory().join(format!("CommitLog-7-{id}.log"));
            env.remove_file(path).await.expect("removed");
        })
    });
    let between = starts(false, false, cassandra(usize::MAX, false));
    let found = lives(vec![writes(false, NO_PAUSE), between, starts(false, false, gone)]);
    assert!(found[2].as_ref().is_err_and(|refused| refused.contains("the segment is missing")));
}

#[test]
fn an_emptied_directory_and_a_drained_log_are_no_loss() {
    let emptied: Deed = Rc::new(|env| {
        Box::pin(async move {
            env.remove_dir_all(directory()).await.expect("removed");
        })
    });
    let (values, _) = after(false, NO_PAUSE, false, emptied).expect("starts");
    assert_eq!(values, Values::new());
    let drained: Life<Found> = Box::new(|env, mesh| {
        Box::pin(async move {
            let opened = open(&env, mesh, settings(false, false)).await?;
            opened.node.begin_log().await?;
            write(&opened.engine, 0).await?;
            opened.node.drain().await?;
            assert!(segment_paths(&env).await.is_empty(), "nothing is left");
            Ok((Values::new(), opened.replay))
        })
    });
    let found = lives(vec![drained, starts(false, false, nothing())]);
    assert_eq!(found[1].as_ref().expect("starts").0, written(1));
}

#[test]
fn a_list_that_is_damaged_stops_the_start_and_one_that_is_gone_does_not() {
    let changed = |change: fn(&mut Vec<u8>)| -> Deed {
        Rc::new(move |env| {
            Box::pin(async move {
                let path = directory().join("HelenusSegments-0.txt");
                let mut bytes = env.read_file(&path, 1 << 20).await.expect("read");
                change(&mut bytes);
                env.write_file_atomically(path, bytes).await.expect("written");
            })
        })
    };
    let flipped: fn(&mut Vec<u8>) = |bytes| bytes[20] ^= 1;
    let refused = after(false, NO_PAUSE, false, changed(flipped)).expect_err("damaged");
    assert!(refused.contains("HelenusSegments-0.txt"), "{refused}");
    let (values, replay) = after(false, NO_PAUSE, true, changed(flipped)).expect("ignored");
    assert_eq!((values, replay.notes.len()), (written(ROWS), 1));
    let gone: Deed = Rc::new(|env| {
        Box::pin(async move {
            let path = directory().join("HelenusSegments-0.txt");
            env.remove_file(path).await.expect("removed");
        })
    });
    let (values, _) = after(false, NO_PAUSE, false, gone).expect("starts");
    assert_eq!(values, written(ROWS));
}

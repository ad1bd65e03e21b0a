//! Messages against what Cassandra's own classes write, both ways.

use repair::tree::Tree;
use repair::wire::*;
use types::{Address, Reader, Uuid};

use crate::common::*;

/// An address as the vectors have it.
fn show_address(address: &Address) -> String {
    let ip = match address.ip {
        std::net::IpAddr::V4(four) => four.to_string(),
        std::net::IpAddr::V6(six) => six.segments().map(|group| format!("{group:x}")).join(":"),
    };
    format!("{ip}@{}", address.port)
}

fn show_desc(desc: &JobDescription) -> String {
    let parent = desc.parent.map_or("-".to_owned(), |parent| parent.to_string());
    let JobDescription { session, keyspace, table, ranges, .. } = desc;
    format!("{parent}/{session}/{keyspace}/{table}/{}", show_ranges(ranges))
}

fn desc(text: &str) -> JobDescription {
    let parts: Vec<&str> = text.split('/').collect();
    JobDescription {
        parent: Uuid::parse(parts[0]),
        session: Uuid::parse(parts[1]).expect("a UUID"),
        keyspace: parts[2].to_owned(),
        table: parts[3].to_owned(),
        ranges: ranges(parts[4]),
    }
}

/// Holds all vectors of a kind against a message: what was read is what the vector says, and is
/// written as it came. No shorter payload is read.
fn check<T>(
    kind: &str,
    read: impl Fn(&mut Reader<'_>) -> Result<T, PayloadError>,
    write: impl Fn(&T, &mut Vec<u8>),
    show: impl Fn(&T) -> Vec<String>,
) {
    for release in RELEASES {
        let vectors = vectors(release, kind);
        assert!(vectors.len() >= 20, "{} {kind}", vectors.len());
        for mut parts in vectors {
            let bytes = hex(parts.pop().expect("bytes"));
            let mut reader = Reader::new(&bytes);
            let message = read(&mut reader).unwrap_or_else(|error| panic!("{kind}: {error}"));
            reader.finish().expect("all of it");
            assert_eq!(show(&message), parts, "{kind} of {release}");
            let mut again = Vec::new();
            write(&message, &mut again);
            assert_eq!(again, bytes, "{kind} of {release}");
            for cut in 0..bytes.len() {
                assert!(read(&mut Reader::new(&bytes[..cut])).is_err(), "{kind} cut at {cut}");
            }
        }
    }
}

#[test]
fn how_repairs_begin_and_end() {
    check(
        "prepare",
        Prepare::read,
        |m, out| m.write(out).unwrap(),
        |m| {
            vec![
                join(&m.tables),
                m.parent.to_string(),
                show_ranges(&m.ranges),
                m.is_incremental.to_string(),
                m.repaired_at.to_string(),
                m.is_global.to_string(),
                m.preview.to_string(),
            ]
        },
    );
    check("snapshot", Snapshot::read, |m, out| m.write(out).unwrap(), |m| vec![show_desc(&m.desc)]);
    check("cleanup", Cleanup::read, Cleanup::write, |m| vec![m.parent.to_string()]);
}

#[test]
fn validation() {
    check(
        "validation_request",
        ValidationRequest::read,
        |m, out| m.write(out).unwrap(),
        |m| vec![show_desc(&m.desc), m.now.to_string()],
    );
}

/// The trees of a vector: `left:right:depth:tokens`.
fn trees(text: &str) -> Vec<Tree> {
    let tree = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        let mut tree = Tree::new(range(parts[0], parts[1]), parts[2].parse().unwrap());
        add_all(&mut tree, &tokens(&parts[3].replace(';', ",")));
        tree
    };
    list(text).into_iter().map(tree).collect()
}

#[test]
fn answers_with_trees() {
    let mut many = 0;
    for release in RELEASES {
        for parts in vectors(release, "validation_response") {
            let bytes = hex(parts[2]);
            let mut reader = Reader::new(&bytes);
            let response = ValidationResponse::read(&mut reader).expect("Cassandra wrote it");
            reader.finish().expect("all of it");
            let desc = desc(parts[0]);
            assert_eq!(response.desc, desc);
            // a job without ranges has no trees, and is no failure
            let is_success = parts[1] != "-" || response.trees.is_some();
            let mut trees = is_success.then(|| trees(parts[1]));
            trees.iter_mut().for_each(|trees| trees.sort_by(Tree::order));
            assert_eq!(response.trees, trees);
            let mut again = Vec::new();
            ValidationResponse { desc, trees }.write(&mut again).unwrap();
            assert_eq!(again, bytes);
            for cut in 0..bytes.len() {
                assert!(ValidationResponse::read(&mut Reader::new(&bytes[..cut])).is_err());
            }
            many += usize::from(response.trees.is_some_and(|trees| trees.len() > 1));
        }
    }
    assert!(many >= 20, "{many} with several trees");
}

#[test]
fn streams_between_replicas() {
    check(
        "sync_request",
        SyncRequest::read,
        |m, out| m.write(out).unwrap(),
        |m| {
            vec![
                show_desc(&m.desc),
                show_address(&m.initiator),
                show_address(&m.source),
                show_address(&m.destination),
                show_ranges(&m.ranges),
                m.preview.to_string(),
                m.is_asymmetric.to_string(),
            ]
        },
    );
    let show_streams = |streams: &[StreamSummary]| {
        join(streams.iter().map(|s| format!("{}:{}:{}", s.table, s.files, s.bytes)))
    };
    check(
        "sync_response",
        SyncResponse::read,
        |m, out| m.write(out).unwrap(),
        |m| {
            let session = |s: &SessionSummary| {
                let (coordinator, peer) = (show_address(&s.coordinator), show_address(&s.peer));
                let (receiving, sending) = (show_streams(&s.receiving), show_streams(&s.sending));
                format!("[{coordinator} {peer} {receiving} {sending}]")
            };
            vec![
                show_desc(&m.desc),
                show_address(&m.source),
                show_address(&m.destination),
                m.is_success.to_string(),
                m.summaries.iter().map(session).collect(),
            ]
        },
    );
}

#[test]
fn phases_of_incremental_repairs() {
    let id = |session: Uuid| vec![session.to_string()];
    check("finalize_propose", FinalizePropose::read, FinalizePropose::write, |m| id(m.session));
    check("finalize_commit", FinalizeCommit::read, FinalizeCommit::write, |m| id(m.session));
    check("fail_session", FailSession::read, FailSession::write, |m| id(m.session));
    check("status_request", StatusRequest::read, StatusRequest::write, |m| id(m.session));
    let answer = |session: Uuid, participant: &Address, yes: bool| {
        vec![session.to_string(), show_address(participant), yes.to_string()]
    };
    check("finalize_promise", FinalizePromise::read, FinalizePromise::write, |m| {
        answer(m.session, &m.participant, m.is_promised)
    });
    type Prepared = PrepareConsistentResponse;
    check("prepare_consistent_response", Prepared::read, Prepared::write, |m| {
        answer(m.session, &m.participant, m.is_success)
    });
    type Request = PrepareConsistentRequest;
    let write = |m: &Request, out: &mut Vec<u8>| m.write(out).unwrap();
    check("prepare_consistent_request", Request::read, write, |m| {
        let participants = join(m.participants.iter().map(show_address));
        vec![m.session.to_string(), show_address(&m.coordinator), participants]
    });
    check("status_response", StatusResponse::read, StatusResponse::write, |m| {
        let next = (0..6).filter_map(SessionState::of_number);
        let next = join(next.filter(|next| m.state.can_become(*next)));
        vec![m.session.to_string(), m.state.to_string(), next]
    });
}

#[test]
fn kinds_of_preview_are_cassandras() {
    for parts in vectors("5.0.9", "preview") {
        let kind = PreviewKind::of_name(parts[0]).expect("a kind");
        let number: i32 = parts[1].parse().unwrap();
        assert_eq!((kind.name(), kind.number()), (parts[0], number));
        assert_eq!(PreviewKind::of_number(number), Some(kind));
        assert_eq!(kind.is_preview().to_string(), parts[2]);
        assert_eq!(kind.log_word(), parts[3]);
        let session = parts[4].rsplit_once('#').expect("a session").1.trim_end_matches(']');
        assert_eq!(kind.log_prefix(Uuid::parse(session).unwrap()), parts[4]);
    }
    assert_eq!([PreviewKind::of_number(4), PreviewKind::of_name("none")], [None, None]);
    assert_eq!([-1, 6].map(SessionState::of_number), [None, None]);
}

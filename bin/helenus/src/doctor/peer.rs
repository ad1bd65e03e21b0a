//! Measures the network between two machines: one serves, the other asks. Nothing is kept of what
//! comes in, and what comes in decides nothing but when a measurement ends.
#![expect(clippy::disallowed_types, reason = "no shard runs")]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use ::doctor::{Figure, percentile};

use super::now;

const MESSAGE_BYTES: usize = 64;
const PIECE_BYTES: usize = 128 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that says nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// A server gives a connection no more time than this.
const SERVED_MAX: Duration = Duration::from_secs(30);
/// The first byte of a connection: all else is sent back.
const ECHO: u8 = b'E';
/// All else is counted; the count is sent at the end.
const COUNT: u8 = b'C';

/// Serves one peer after the other, until the process is stopped.
///
/// # Errors
/// If the port cannot be had.
pub fn serve(port: u16, said: impl FnOnce(u16)) -> io::Result<()> {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let listener = TcpListener::bind(any)
        .or_else(|_| TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))?;
    said(listener.local_addr()?.port());
    // whoever went away is the peer's affair
    for stream in listener.incoming().flatten() {
        let _ = answer(stream);
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let begin = now();
    prepare(&stream)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let mut buf = vec![0; PIECE_BYTES];
    let mut count = 0_u64;
    while begin.elapsed() < SERVED_MAX {
        let read = stream.read(&mut buf)?;
        if read == 0 {
            break;
        }
        match kind {
            [ECHO] => stream.write_all(buf.get(..read).unwrap_or_default())?,
            [COUNT] => count = count.saturating_add(read as u64),
            _ => return Ok(()),
        }
    }
    if kind == [COUNT] {
        stream.write_all(&count.to_be_bytes())?;
    }
    Ok(())
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))
}

fn connect(peer: &str, kind: u8) -> io::Result<TcpStream> {
    let address = peer.to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other("it has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    prepare(&stream)?;
    stream.write_all(&[kind])?;
    Ok(stream)
}

/// Measures round trips and bandwidth to a peer that serves.
///
/// # Errors
/// If it does not answer.
pub fn measure(peer: &str, each: Duration) -> io::Result<Vec<Figure>> {
    let mut figures = round_trips(peer, each)?;
    let before = segments();
    figures.push(bandwidth(peer, each)?);
    if let (Some((out, again)), Some((out_before, again_before))) = (segments(), before) {
        let sent = out.saturating_sub(out_before).max(1);
        let percent = again.saturating_sub(again_before) as f64 * 100.0 / sent as f64;
        figures.push(Figure::time("network_sent_again", percent, "%"));
    }
    Ok(figures)
}

fn round_trips(peer: &str, each: Duration) -> io::Result<Vec<Figure>> {
    let mut stream = connect(peer, ECHO)?;
    let (mut buf, mut times) = ([0; MESSAGE_BYTES], Vec::new());
    let begin = now();
    while begin.elapsed() < each {
        let start = now();
        stream.write_all(&buf)?;
        stream.read_exact(&mut buf)?;
        times.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    let figure = |of_hundred, times: &mut Vec<u64>| {
        let nanos = percentile(times, of_hundred);
        Figure::time(&format!("network_round_trip_p{of_hundred}"), nanos as f64 / 1e3, "us")
    };
    Ok(vec![figure(50, &mut times), figure(99, &mut times)])
}

fn bandwidth(peer: &str, each: Duration) -> io::Result<Figure> {
    let mut stream = connect(peer, COUNT)?;
    let piece = vec![0x5a; PIECE_BYTES];
    let begin = now();
    while begin.elapsed() < each {
        stream.write_all(&piece)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut count = [0; 8];
    stream.read_exact(&mut count)?;
    let bytes = u64::from_be_bytes(count) as f64;
    Ok(Figure::rate("network_bandwidth", bytes / 1e6 / begin.elapsed().as_secs_f64(), "MB/s"))
}

/// TCP's segments of this machine since boot: sent, and sent again.
fn segments() -> Option<(u64, u64)> {
    #[expect(clippy::disallowed_methods, reason = "no shard runs")]
    let text = std::fs::read_to_string("/proc/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |name: &str| {
        let at = names.split(' ').position(|other| other == name)?;
        values.split(' ').nth(at)?.parse().ok()
    };
    Some((value("OutSegs")?, value("RetransSegs")?))
}

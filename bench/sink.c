/* The limit a produce benchmark is measured against: a Kafka "broker" that knows one topic with
 * one partition, answers every Produce with success and stores nothing.
 *
 *   cc -O2 -o sink sink.c && ./sink            prints the port it listens on
 *
 * It offers only old, non-flexible versions (ApiVersions 0, Metadata 1, Produce 3..7), which is
 * all librdkafka needs. Single-threaded poll loop, as the broker's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CLIENTS 64
#define TOPIC "bench"

struct client { int fd; char *in; size_t used, size; };

static char out[65536];
static size_t out_used;
static uint16_t port;

static void put8(int v) { out[out_used++] = (char)v; }
static void put16(int v) { put8(v >> 8); put8(v & 255); }
static void put32(int32_t v) { put16((v >> 16) & 65535); put16(v & 65535); }
static void put64(int64_t v) { put32((int32_t)(v >> 32)); put32((int32_t)v); }
static void put_string(const char *s) { size_t n = strlen(s); put16((int)n); memcpy(out + out_used, s, n); out_used += n; }
static int32_t get32(const char *p) { uint32_t v; memcpy(&v, p, 4); return (int32_t)ntohl(v); }
static int get16(const char *p) { uint16_t v; memcpy(&v, p, 2); return (int16_t)ntohs(v); }

static void send_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) return;
            struct pollfd wait = {fd, POLLOUT, 0};
            poll(&wait, 1, 1000);
            continue;
        }
        data += sent; size -= (size_t)sent;
    }
}

/* Body of one answer, after the correlation id. Returns 0 for a request that gets none. */
static int answer(int key, int version, const char *body) {
    if (key == 18) {                                     /* ApiVersions */
        put16(version == 0 ? 0 : 35);
        put32(3);
        put16(18); put16(0); put16(0);
        put16(3); put16(0); put16(1);
        put16(0); put16(0); put16(7);
        return 1;
    }
    if (key == 3) {                                      /* Metadata v0, v1 */
        put32(1); put32(1); put_string("127.0.0.1"); put32(port);
        if (version >= 1) { put16(-1); put32(1); }
        put32(1); put16(0); put_string(TOPIC);
        if (version >= 1) put8(0);
        put32(1); put16(0); put32(0); put32(1); put32(1); put32(1); put32(1); put32(1);
        return 1;
    }
    if (key == 0) {                                      /* Produce v3..v7 */
        int txn = get16(body);
        int acks = get16(body + 2 + (txn > 0 ? txn : 0));
        if (acks == 0) return 0;
        put32(1); put_string(TOPIC); put32(1);
        put32(0); put16(0); put64(0); put64(-1);
        if (version >= 5) put64(0);
        put32(0);
        return 1;
    }
    return -1;
}

static int handle(struct client *c, const char *frame) {
    int key = get16(frame), version = get16(frame + 2), client_id = get16(frame + 8);
    out_used = 4;
    put32(get32(frame + 4));
    int answered = answer(key, version, frame + 10 + (client_id > 0 ? client_id : 0));
    if (answered < 0) return -1;
    if (answered) {
        uint32_t size = htonl((uint32_t)(out_used - 4));
        memcpy(out, &size, 4);
        send_all(c->fd, out, out_used);
    }
    return 0;
}

/* Reads what is there and handles every whole frame. Returns -1 when the client is gone. */
static int serve(struct client *c) {
    ssize_t got = recv(c->fd, c->in + c->used, c->size - c->used, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN ? 0 : -1;
    c->used += (size_t)got;
    size_t at = 0;
    while (c->used - at >= 4) {
        size_t frame = (size_t)get32(c->in + at);
        if (frame + 4 > c->size) {
            c->size = frame + 4;
            c->in = realloc(c->in, c->size);
        }
        if (c->used - at < frame + 4) break;
        if (handle(c, c->in + at + 4) < 0) return -1;
        at += frame + 4;
    }
    memmove(c->in, c->in + at, c->used - at);
    c->used -= at;
    return 0;
}

int main(void) {
    struct client clients[MAX_CLIENTS];
    struct pollfd polls[MAX_CLIENTS + 1];
    int count = 0, one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    port = ntohs(address.sin_port);
    printf("%d\n", port);
    fflush(stdout);
    for (;;) {
        polls[0] = (struct pollfd){listener, POLLIN, 0};
        for (int i = 0; i < count; i++) polls[i + 1] = (struct pollfd){clients[i].fd, POLLIN, 0};
        if (poll(polls, (nfds_t)count + 1, -1) < 0) continue;
        for (int i = count - 1; i >= 0; i--) {
            if (!polls[i + 1].revents || serve(&clients[i]) == 0) continue;
            close(clients[i].fd);
            free(clients[i].in);
            clients[i] = clients[--count];
        }
        if (polls[0].revents && count < MAX_CLIENTS) {
            int fd = accept(listener, NULL, NULL);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            fcntl(fd, F_SETFL, O_NONBLOCK);
            clients[count++] = (struct client){fd, malloc(1 << 20), 0, 1 << 20};
        }
    }
}
